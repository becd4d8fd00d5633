"""The UCI protocol: kernels, choices and files, against the published code in a few lines."""

import csv
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

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
    (folder / f"{name}.txt").write_bytes(
        f"n_entradas= {X.shape[1]}\nn_clases= {len(set(y))}\nn_arquivos= 1\n".encode()
        + f"fich1= {name}_R.dat\n".encode(errors="surrogateescape")
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


def test_threads_give_values_in_order_and_pass_errors_on():
    values = [0.03, 0.0, 0.02, 0.01]

    def task(value):
        time.sleep(value)
        return -value

    assert uci._in_threads(task, values) == [-value for value in values]
    with pytest.raises(ZeroDivisionError):
        uci._in_threads(lambda value: 1 / value, values)


def test_an_interrupt_waits_for_no_fit(moons):
    """A fit that would take a minute, in a process that has to be gone before."""
    root, _ = moons
    code = (
        "import signal, sys, time, sklearn.svm\n"
        "from kernelcore import cli\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def fit(self, *_, **__):\n"
        "    sys.stdout.write('fit\\n')\n"  # whole lines, as fits run in threads
        "    sys.stdout.flush()\n"
        "    time.sleep(60)\n"
        "sklearn.svm.SVC.fit = fit\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    path = str(pathlib.Path(uci.__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", code, "run", "uci", "--data", str(root), "--sets", "moons"],
        env=os.environ | {"PYTHONPATH": path}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        head = [process.stdout.readline() for _ in range(2)]
        assert head[1] == "fit\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "kernelcore: interrupted\n")


@pytest.mark.slow
def test_the_published_results_are_reached():
    """On the sets of at most 400 rows; others take minutes."""
    if "KERNELCORE_UCI" not in os.environ:
        pytest.skip("KERNELCORE_UCI names no folder")
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


@pytest.fixture
def three(moons):
    """Moons between two sets that cannot be run: one is no table, the other one misses a file."""
    root, given = moons
    for name in ("ash", "sun"):
        write(root / name, *given)
    (root / "ash" / "ash_R.dat").write_bytes(b"\0\xff" * 100)
    (root / "sun" / "conxuntos.dat").unlink()
    return root


def test_a_broken_set_is_named_and_the_others_are_run(three, capsys, tmp_path):
    out = tmp_path / "table.csv"
    assert cli.main(["run", "uci", "--data", str(three), "--output", str(out)]) == 1
    captured = capsys.readouterr()
    _, ash, moons, sun, mean = captured.out.splitlines()
    assert ash.startswith(f"{'ash':28s} failed: {three}/ash/ash_R.dat must have rows of a number")
    assert moons.split()[:4] == ["moons", "90", "3", "3"]
    assert sun.startswith(f"{'sun':28s} failed: ")
    assert f"'{three}/sun/conxuntos.dat'" in sun
    assert mean.startswith("mean of 1 ")
    assert captured.err == "kernelcore: 2 of 3 data sets failed: ash, sun\n"
    assert list(uci.read(out)) == ["moons"]


def test_memory_that_one_set_lacks_does_not_stop_the_others(three, monkeypatch):
    def evaluate(data, method):
        raise MemoryError

    monkeypatch.setattr(uci, "evaluate", evaluate)
    (result,) = uci.classify(three, ["moons"])
    assert isinstance(result.error, MemoryError)
    assert result.reason == "failed: MemoryError"


def test_a_broken_scikit_learn_stops_the_run(three, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    assert cli.main(["run", "uci", "--data", str(three), "--sets", "moons"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.fullmatch(r"kernelcore: .*sklearn\.svm.*\n", captured.err)


def test_results_are_in_the_file_as_soon_as_they_are_there(moons, tmp_path, monkeypatch):
    root, given = moons
    write(root / "nine", *given)
    out = tmp_path / "table.csv"
    seen = []

    def evaluate(data, method):
        seen.append(list(uci.read(out)))
        if data.name == "nine":
            raise KeyboardInterrupt
        return uci.Outcome(50.0, "", 0.0)

    monkeypatch.setattr(uci, "evaluate", evaluate)
    assert cli.main(["run", "uci", "--data", str(root), "--output", str(out)]) == 130
    assert seen == [[], [], [], ["moons"]]
    assert list(uci.read(out)) == ["moons"]


def test_a_second_run_goes_on_or_is_refused(three, tmp_path, monkeypatch, capsys):
    """A file with results is never written over; with --resume its sets are not run again."""
    out = tmp_path / "table.csv"
    command = ["run", "uci", "--data", str(three), "--output", str(out)]
    assert cli.main([*command, "--resume"]) == 1  # there is nothing yet to go on with
    first, table = capsys.readouterr().out, out.read_text()
    halves = range(4), range(4, 8)
    write(three / "nine", np.eye(8), [0, 1] * 4, halves, [halves] * 4)
    monkeypatch.setattr(uci, "evaluate", lambda *_: uci.Outcome(50.0, "by, chance", 0.0))
    assert cli.main(command) == 1
    assert capsys.readouterr().err == (
        f"kernelcore: output must be a new file: {out} has results; resume (--resume) keeps them "
        "and runs the others\n"
    )
    assert out.read_text() == table
    assert cli.main([*command, "--resume"]) == 1
    again = capsys.readouterr().out.splitlines()
    without_seconds = [re.sub(r"[\d.]+ s", "", line) for line in (again[2], first.splitlines()[2])]
    assert without_seconds[0] == without_seconds[1]
    assert out.read_text().startswith(table)
    assert list(uci.read(out)) == ["moons", "nine"]
    assert uci.read(out)["nine"].outcomes["NTK ridge"] == (50.0, "by, chance", 0.0)
    assert [line.split()[0] for line in again] == ["n", "ash", "moons", "nine", "sun", "mean"]


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("a,b\n", "another first line"),
        ("{head}moons,90,3,3,NTK-SVM,50.000,x,1.00\n", "something else from line 2 on"),
        ("{head}" + "moons,90,3,3,NTK-SVM,50.000,x,1.00\n" * 3, "something else from line 2 on"),
        ("{head}" + "moons,many,3,3,NTK-SVM,50.000,x,1.00\n" * 3, "something else from line 2 on"),
        ("{head}" + "moons\n" * 3, "something else from line 2 on"),
    ],
)
def test_other_files_are_not_added_to(moons, tmp_path, capsys, text, got):
    root, _ = moons
    out = tmp_path / "table.csv"
    out.write_text(text.format(head=",".join(uci.HEAD) + "\n"))
    before = out.read_bytes()
    command = ["run", "uci", "--data", str(root), "--output", str(out), "--resume"]
    assert cli.main(command) == 1
    assert capsys.readouterr().err == (
        f"kernelcore: {out} must be a table of this experiment: got {got}\n"
    )
    assert out.read_bytes() == before


@pytest.mark.parametrize("name", ["", "missing/table.csv"])
def test_the_output_is_checked_before_any_work(moons, tmp_path, capsys, monkeypatch, name):
    root, _ = moons
    monkeypatch.setattr(uci, "load", lambda *_: pytest.fail("work has begun"))
    out = tmp_path / name
    assert cli.main(["run", "uci", "--data", str(root), "--output", str(out)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (f"kernelcore: output must name a file in an existing folder: {out}\n")


@pytest.mark.skipif(os.name != "posix", reason="names of files in no encoding")
def test_names_in_no_encoding_come_back_from_the_table(moons, tmp_path, monkeypatch):
    root, given = moons
    name = os.fsdecode(b"n\xf1")
    write(root / name, *given)
    monkeypatch.setattr(uci, "evaluate", lambda *_: uci.Outcome(50.0, "", 0.0))
    out = tmp_path / "table.csv"
    assert [row.name for row in uci.classify(root, [name], output=out)] == [name]
    assert list(uci.read(out)) == [name]


def test_a_set_named_twice_is_run_once(moons, monkeypatch):
    root, _ = moons
    monkeypatch.setattr(uci, "evaluate", lambda *_: uci.Outcome(50.0, "", 0.0))
    assert len(uci.classify(root, ["moons", "moons"])) == 1


def test_sets_that_the_protocol_leaves_out(moons, capsys, monkeypatch):
    root, (X, y, choice, folds) = moons
    write(root / "sun", X, y, choice, folds)
    (root / "sun" / "conxuntos_kfold.dat").unlink()  # as where test data come by themselves
    assert cli.main(["run", "uci", "--data", str(root), "--sets", "sun"]) == 1
    assert capsys.readouterr().err == "kernelcore: sets must be one of 'moons': got 'sun'\n"
    monkeypatch.setattr(uci, "LARGEST", 89)
    assert cli.main(["run", "uci", "--data", str(root), "--sets", "moons"]) == 0
    _, line = capsys.readouterr().out.splitlines()
    assert line.split() == "moons 90 3 left out: more than 89 rows".split()


def test_bad_folders_are_refused(moons, tmp_path, capsys, monkeypatch):
    root, _ = moons
    empty = tmp_path / "empty"
    empty.mkdir()
    assert cli.main(["run", "uci", "--data", str(empty), "--sets", "moons"]) == 1
    want = f"kernelcore: data must be a folder of data sets: got none in {empty}\n"
    assert capsys.readouterr().err == want
    assert cli.main(["run", "uci", "--data", str(root / "moons"), "--sets", "moons"]) == 1
    want = f"kernelcore: data must be a folder of data sets: got none in {root / 'moons'}; "
    assert capsys.readouterr().err == f"{want}pass {root}\n"
    for none in (tmp_path / "missing", root / "moons" / "moons.txt"):
        assert cli.main(["run", "uci", "--data", str(none), "--sets", "moons"]) == 1
        want = f"kernelcore: data must be an existing folder: {none}\n"
        assert capsys.readouterr().err == want
    assert cli.main(["run", "uci", "--data", str(root), "--sets", "sun"]) == 1
    captured = capsys.readouterr()
    assert captured.err == "kernelcore: sets must be one of 'moons': got 'sun'\n"
    assert captured.out == ""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert cli.main(["run", "uci", "--data", str(root), "--sets", "moons"]) == 1
    assert capsys.readouterr().err == (
        "kernelcore: kernelcore.experiments.uci needs scikit-learn; install it with: "
        "pip install 'kernelcore[sklearn]'\n"
    )


@pytest.mark.parametrize(
    "change",
    [
        ("-1", "must have row numbers from 0 to 89: got '-1' in line 2"),
        ("90", "must have row numbers from 0 to 89: got '90' in line 2"),
        ("1e1", "must have row numbers from 0 to 89: got '1e1' in line 2"),
    ],
)
def test_rows_that_a_set_does_not_have_are_refused(moons, change):
    """Above all a negative one, which would count from the end."""
    root, _ = moons
    word, rule = change
    for name in ("conxuntos.dat", "conxuntos_kfold.dat"):
        file = root / "moons" / name
        kept = file.read_text()
        first, second, *rest = kept.splitlines()
        file.write_text("\n".join([first, f"{second} {word}", *rest]))
        with pytest.raises(ValueError, match=f"^{re.escape(f'{file} {rule}')}$"):
            uci.load(root / "moons")
        file.write_text(kept)
    uci.load(root / "moons")


def test_rows_that_were_learned_from_are_no_test(moons):
    root, _ = moons
    file = root / "moons" / "conxuntos_kfold.dat"
    lines = file.read_text().splitlines()
    row = lines[2].split()[5]
    lines[3] += f" {row}"
    file.write_text("\n".join(lines))
    rule = f"must not test on rows that were learned from: got row {row} in line 3 and in the next"
    with pytest.raises(ValueError, match=f"^{re.escape(f'{file} {rule}')}$"):
        uci.load(root / "moons")
