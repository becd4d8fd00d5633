from ._one_step import OneStepRegressor as OneStepRegressor
