"""The UCI protocol: kernels, choices and files, against the published code in a few lines."""

import csv
import os
import pathlib
import sys

import numpy as np
import pytest
from oracle import make_uci
from oracle import uci as oracle

from kernelcore import cli
from kernelcore.experiments import uci


def write(folder, X, y, choice, folds):
    """A data set in the files of the benchmark."""
    folder.mkdir(parents=True)
    name = folder.name
    (folder / f"{name}.txt").write_text(
        f"n_entradas= {X.shape[1]}\nn_clases= {len(set(y))}\nn_arquivos= 1\nfich1= {name}_R.dat\n"
    )
    columns = "\t".join(f"f{i + 1}" for i in range(X.shape[1]))
    lines = [f"\t{columns}\tclase"]
    lines += [
        "\t".join([str(i + 1), *map(repr, map(float, row)), str(c)])
        for i, (row, c) in enumerate(zip(X, y, strict=True))
    ]
    (folder / f"{name}_R.dat").write_text("\n".join(lines) + "\n")
    for file, parts in (("conxuntos.dat", [choice]), ("conxuntos_kfold.dat", folds)):
        text = "\n".join(" ".join(map(str, part)) for pair in parts for part in pair)
        (folder / file).write_text(text + "\n")


@pytest.fixture
def moons(tmp_path):
    """Two classes that no line divides, and a third far away; rows of unlike size."""
    rng = np.random.default_rng(0)
    n = 90
    angle = rng.uniform(0, np.pi, n)
    y = rng.integers(0, 3, n)
    X = np.stack([np.cos(angle), np.sin(angle), rng.standard_normal(n)], 1)
    X[y == 1] = [1, 0.4, 0] - X[y == 1]
    X[y == 2] += [0.0, 2.5, 1.0]
    X += 0.25 * rng.standard_normal(X.shape)
    order = rng.permutation(n)
    choice = (order[:45], order[45:])
    quarters = np.array_split(rng.permutation(n), 4)
    folds = [(np.concatenate([q for q in quarters if q is not test]), test) for test in quarters]
    write(tmp_path / "moons", X, y, choice, folds)
    return tmp_path, (X, y, choice, folds)


def test_kernels_are_those_of_the_published_code():
    X = np.sin(1 + 0.9 * np.arange(3)[:, None] + 1.7 * np.arange(4))
    want = [1.372092499, 0.8153343513, 0.2809620114]
    np.testing.assert_allclose(uci.ntk(2, 0)(X)[0], want, rtol=1e-9)
    np.testing.assert_allclose(
        uci.ntk(2, 1)(X)[0], [0.9147283326, 0.6432372009, 0.2970165371], rtol=1e-9
    )
    # Off the diagonal, where the plain arccos of the oracle is as good.
    off = ~np.eye(3, dtype=bool)
    for depth, row in enumerate(oracle.kernels(X, 5)):
        for fixed, K in enumerate(row):
            np.testing.assert_allclose(uci.ntk(depth, fixed)(X)[off], K[off], rtol=1e-12)


def test_files_are_read_as_they_were_written(moons):
    root, (X, y, choice, folds) = moons
    data = uci.load(root / "moons")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    for got, want in zip([data.choice, *data.folds], [choice, *folds], strict=True):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_protocol_is_that_of_the_published_code(moons):
    root, (X, y, choice, folds) = moons
    want, (depth, fixed, cost) = oracle.evaluate(X, y, choice, folds)
    got = uci.evaluate(uci.load(root / "moons"), "NTK-SVM")
    assert got.chosen == f"depth {depth}, fixed {fixed}, C {cost:g}"
    assert got.accuracy == pytest.approx(want, abs=0.5)
    assert want > 60


@pytest.mark.parametrize("cost", [1.0, 100.0])
@pytest.mark.parametrize("rows", [200, 1000])
def test_rows_that_repeat_count_once_and_as_often(moons, rows, cost, monkeypatch):
    from sklearn.svm import SVC

    root, (X, y, (train, test), _) = moons
    data = uci.load(root / "moons")
    often = np.random.default_rng(1).choice(train, rows)
    sizes, fit = [], SVC.fit

    def noted(self, K, *given, **keywords):
        sizes.append(len(K))
        return fit(self, K, *given, **keywords)

    K = uci.ntk(2, 0)(X)
    want = oracle.accuracy(K, y, often, test, cost)
    monkeypatch.setattr(SVC, "fit", noted)
    assert uci._svm(data, K, often, test, [cost]) == [want]
    assert sizes == [len(set(often)) if rows == 1000 else rows]


@pytest.mark.skipif("KERNELCORE_UCI" not in os.environ, reason="KERNELCORE_UCI names no folder")
def test_the_published_results_are_reached():
    """On the sets of at most 400 rows; others take minutes."""
    with make_uci.TABLE.open() as file:
        published = {row["set"]: float(row["accuracy"]) for row in csv.DictReader(file)}
    sets = [uci.load(pathlib.Path(os.environ["KERNELCORE_UCI"]) / name) for name in published]
    small = [data for data in sets if len(data.X) <= 400]
    assert len(small) > 10
    for data in small:
        found = uci.evaluate(data, "NTK-SVM").accuracy
        assert found == pytest.approx(published[data.name], abs=0.5), data.name


def test_ridge_is_least_squares_on_centred_classes(moons):
    root, (X, y, choice, _) = moons
    data = uci.load(root / "moons")
    K = uci.ntk(1, 0)(X)
    train, test = choice
    targets = np.eye(3)[y[train]] - 1 / 3
    unit = np.trace(K[np.ix_(train, train)]) / len(train)
    for ridge, accuracy in zip((1e-3, 1.0), uci._ridge(data, K, *choice, (1e-3, 1.0)), strict=True):
        alpha = np.linalg.solve(
            K[np.ix_(train, train)] + ridge * unit * np.eye(len(train)), targets
        )
        want = ((K[np.ix_(test, train)] @ alpha).argmax(1) == y[test]).mean()
        assert accuracy == want
    assert data.name == "moons"


def test_the_command_prints_and_writes_the_table(moons, capsys, tmp_path):
    root, _ = moons
    out = tmp_path / "table.csv"
    assert cli.main(["run", "uci", "--data", str(root), "--output", str(out)]) == 0
    head, line, mean = capsys.readouterr().out.splitlines()
    assert head.split() == ["n", "d", "c", "NTK-SVM", "NTK", "ridge", "Gaussian-SVM"]
    assert line.split()[:4] == ["moons", "90", "3", "3"]
    assert mean.startswith("mean of 1")
    assert [float(v) for v in line.split()[4::3]] == [float(v) for v in mean.split()[3::3]]
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == list(uci.METHODS)
    for row, cell in zip(rows, line.split()[4::3], strict=True):
        assert float(row["accuracy"]) == pytest.approx(float(cell), abs=0.005)
        assert 60 < float(row["accuracy"]) <= 100


def test_sets_that_the_protocol_leaves_out(moons, capsys, monkeypatch):
    root, (X, y, choice, folds) = moons
    write(root / "sun", X, y, choice, folds)
    (root / "sun" / "conxuntos_kfold.dat").unlink()  # as where test data come by themselves
    assert cli.main(["run", "uci", "--data", str(root), "--sets", "sun"]) == 1
    assert capsys.readouterr().err == "kernelcore: sets must be one of 'moons': got 'sun'\n"
    monkeypatch.setattr(uci, "LARGEST", 89)
    assert cli.main(["run", "uci", "--data", str(root)]) == 0
    _, line = capsys.readouterr().out.splitlines()
    assert line.split() == "moons 90 3 left out: more than 89 rows".split()


def test_bad_folders_are_refused(moons, tmp_path, capsys, monkeypatch):
    root, _ = moons
    empty = tmp_path / "empty"
    empty.mkdir()
    assert cli.main(["run", "uci", "--data", str(empty)]) == 1
    want = f"kernelcore: data must be a folder of data sets: {empty} has none\n"
    assert capsys.readouterr().err == want
    assert cli.main(["run", "uci", "--data", str(root), "--sets", "sun"]) == 1
    assert capsys.readouterr().err == "kernelcore: sets must be one of 'moons': got 'sun'\n"
    folds = root / "moons" / "conxuntos_kfold.dat"
    lines = folds.read_text().splitlines()
    folds.write_text("\n".join(lines[:-1]))
    with pytest.raises(ValueError, match=r"conxuntos_kfold\.dat must have 8 lines: got 7$"):
        uci.load(root / "moons")
    folds.write_text("\n".join([*lines[:-1], "0 1 90"]))
    with pytest.raises(ValueError, match=r"^moons must have the rows of its divisions: 90 of 90$"):
        uci.load(root / "moons")
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    assert cli.main(["run", "uci", "--data", str(root)]) == 1
    assert capsys.readouterr().err == f"kernelcore: {uci.MISSING}\n"
