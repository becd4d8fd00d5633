"""Machine code of a device, run instruction by instruction on one block of threads, and counted.

What a kernel does depends on its arguments: a program is interpreted, and planes have shapes. So
its machine code is disassembled (``nvdisasm``, from the package nvidia-cuda-nvdisasm or a CUDA
toolkit) and run here on the arguments of a real launch, all threads of a block side by side. That
counts instructions by the unit which executes them, cycles of shared memory with its conflicts, and
sectors beyond the first-level cache. The results can be compared with those of the host twin.

The compiler has written into every instruction how long to wait before the next one, and which
results of other instructions to wait for. A clock for each warp follows that: the time that a block
would take if it never had to wait for another warp's instructions.
"""

import collections
import itertools
import re
import shutil
import struct
import subprocess
import tempfile
from importlib import metadata

import numpy as np

PACKAGE = "nvidia-cuda-nvdisasm"
PARAMETERS = {"sm_80": 0x160, "sm_90": 0x210}
"""Where the arguments of a kernel begin in its constant bank."""
WINDOW = 1 << 40
"""Where generic addresses mean shared memory: below those of any buffer."""
LATENCY = {"LDS": 29, "LDG": 38, "LD": 38, "LDL": 38, "LDC": 30, "MUFU": 23, "BAR": 25}
"""Cycles until a result is there; 20 for others of no fixed time, ``FAR`` beyond L1."""
FAR = 262
READ = 12
"""Cycles until a store or load has read its registers."""


def disassembler():
    """Return the path of nvdisasm."""
    try:
        for file in metadata.distribution(PACKAGE).files or ():
            if file.name == "nvdisasm":
                return str(file.locate())
    except metadata.PackageNotFoundError:
        pass
    found = shutil.which("nvdisasm")
    if not found:
        raise ImportError(
            f"counting instructions needs nvdisasm; install it with: pip install {PACKAGE}"
        )
    return found


# ---- code

UNITS = {
    "fp32": "FFMA FADD FMUL",
    "imad": "IMAD HFMA2",
    "mufu": "MUFU F2F F2I I2F FCHK I2FP F2FP",
    "double": "DFMA DADD DMUL DSETP",
    "shared": "LDS STS",
    "global": "LDG STG LD ST LDL STL",
    "control": "BRA BRX BSSY BSYNC CALL RET EXIT NOP WARPSYNC BREAK BAR YIELD",
}
UNIT = {name: unit for unit, names in UNITS.items() for name in names.split()}


def unit(name):
    """Return what executes an instruction; integers and comparisons are the rest."""
    return "uniform" if name[0] == "U" or name in ("R2UR", "S2UR") else UNIT.get(name, "alu")


class Instruction:
    """One of a kernel: name, modifiers, operands, guard, and how long the compiler has it wait."""

    def __init__(self, pc, text, control):
        self.pc, self.text = pc, text
        guard = re.match(r"@(!?U?P\w+)\s+", text)
        self.guard = guard[1] if guard else None
        body = text[guard.end() :] if guard else text
        head, _, rest = body.partition(" ")
        self.name, *self.modifiers = head.split(".")
        rest = re.sub(r"\(\*.*?\*\)", "", rest)
        self.operands = [o.strip() for o in rest.split(",") if o.strip()]
        self.unit = unit(self.name)
        self.stall = max(1, control & 15)
        self.write, self.read, self.wait = control >> 5 & 7, control >> 8 & 7, control >> 11 & 63


class Kernel:
    """The instructions of a kernel by address, and its constants."""

    def __init__(self, cubin, name):
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            command = [disassembler(), "-c", "-hex", file.name]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        text = re.search(rf"^\.text\.{name}:\n(.*?)(?=^\s*\.section|\Z)", text, re.S | re.M)[1]
        self.code, labels, waiting = {}, {}, []
        lines = text.splitlines()
        for line, after in zip(lines, [*lines[1:], ""], strict=True):
            if label := re.match(r"([.$\w]+):", line):
                waiting.append(label[1])
            elif found := re.match(r"\s+/\*([0-9a-f]+)\*/\s+(.*?)\s*;\s+/\*", line):
                pc = int(found[1], 16)
                high = int(re.search(r"/\* 0x([0-9a-f]+) \*/", after)[1], 16)
                self.code[pc] = Instruction(pc, found[2], high >> 41 & 0x1FFFFF)
                labels.update(dict.fromkeys(waiting, pc))
                waiting = []
        for instruction in self.code.values():
            instruction.operands = [
                hex(labels[o[2:-1]]) if o.startswith("`(") and o[2:-1] in labels else o
                for o in instruction.operands
            ]
        self.banks = {
            int(k[12:].partition(".")[0] or 0): v
            for k, v in sections(cubin).items()
            if re.fullmatch(rf"\.nv\.constant\d\.{name}", k)
        }


def sections(cubin):
    """Return the sections of an ELF file by name."""
    (start,), (size, count, names) = (
        struct.unpack_from("<Q", cubin, 40),
        struct.unpack_from("<3H", cubin, 58),
    )
    heads = [struct.unpack_from("<IIQQQQ", cubin, start + k * size) for k in range(count)]
    text = heads[names]
    found = {}
    for name, _, _, _, at, length in heads:
        begin = text[4] + name
        found[cubin[begin : cubin.index(b"\0", begin)].decode()] = cubin[at : at + length]
    return found


# ---- operands

U32, I32, U64, I64 = np.uint32, np.int32, np.uint64, np.int64
FLAG = re.compile(r"U?P[T\d]")
LOW = U64(0xFFFFFFFF)


def signed(x):
    return x.astype(U32).view(I32).astype(I64)


def as_float(x):
    return x.view(np.float32)


class Block:
    """A block of threads that runs a kernel.

    Parameters
    ----------
    arguments : the bytes of the kernel's parameters
    memory : (lowest address, its bytes as an array): all buffers of the device
    index, grid : which block, and of how many
    """

    def __init__(self, kernel, arch, arguments, memory, index, grid, threads, shared, cached=1024):
        self.kernel, self.threads, self.warps = kernel, threads, threads // 32
        self.R = np.zeros((256, threads), U32)
        self.UR = np.zeros((64, threads), U32)
        self.P, self.UP = (np.zeros((8, threads), bool) for _ in range(2))
        self.P[7] = self.UP[7] = True
        self.base, self.memory = memory
        self.shared = np.zeros(shared + 1024, np.uint8)  # from sm_90 on the first kB is taken
        self.local = np.zeros((threads, 4096), np.uint8)
        bank = bytearray(0x1000)
        bank[PARAMETERS[arch] : PARAMETERS[arch] + len(arguments)] = arguments
        for at, value in zip((0, 4, 8, 12, 16, 20), (threads, 1, 1, *grid), strict=True):
            struct.pack_into("<I", bank, at, value)
        for at in (0x18, 0x20) if arch == "sm_80" else ():
            struct.pack_into("<Q", bank, at, WINDOW)
        struct.pack_into("<I", bank, 0x28, 4096)
        self.banks = {**{k: bytes(v) for k, v in kernel.banks.items()}, 0: bytes(bank)}
        self.special = {
            "SR_TID.X": np.arange(threads, dtype=U32), "SR_TID.Y": np.zeros(threads, U32),
            "SR_CTAID.X": np.full(threads, index[0], U32),
            "SR_CTAID.Y": np.full(threads, index[1], U32), "SR_CTAID.Z": np.zeros(threads, U32),
            "SR_CgaCtaId": np.zeros(threads, U32),
            "SR_SWINHI": np.full(threads, WINDOW >> 32, U32),
        }  # fmt: skip
        self.issued = collections.Counter()  # warp instructions by address
        self.conflicts = collections.Counter()  # cycles of shared memory by address
        self.sectors = collections.Counter()  # of 32 bytes, asked of L1, by address
        self.spent = collections.Counter()  # cycles of the first warp by address
        self.known = {}
        self.missed = 0  # those that L1 had not
        self.cache, self.cached = collections.OrderedDict(), cached
        self.clock = np.zeros(self.warps, I64)
        self.ready = np.zeros((8, self.warps), I64)
        self.unknown = []  # instructions that nothing here does
        self.guards = {pc: self.predicate(i.guard) for pc, i in kernel.code.items() if i.guard}
        self.compiled = {pc: self.compile(i) for pc, i in kernel.code.items()}

    # ---- reading operands

    def reader(self, text, kind="int"):
        """Return a function that gives an operand's values: 32 bits each, or a pair's 64."""
        text = text.replace(".reuse", "").strip()
        minus = text.startswith("-") and not re.match(r"-(0x|\d|INF)", text)
        inverse = text.startswith("~")
        text = text[1:] if minus or inverse else text
        size = text.startswith("|")
        text = text.strip("|")
        wide = kind in ("u64", "f64")
        get = self.raw(text, kind, wide)
        if kind == "float":

            def read():
                x = as_float(get())
                x = np.abs(x) if size else x
                return -x if minus else x
        elif kind == "f64":

            def read():
                x = get().view(np.float64)
                x = np.abs(x) if size else x
                return -x if minus else x
        elif minus or inverse:

            def read():
                x = get()
                return ~x + x.dtype.type(1) if minus else ~x
        else:
            read = get
        read.minus = minus
        return read

    def raw(self, text, kind, wide):
        n = self.threads
        if found := re.fullmatch(r"(U?R)(Z|\d+)(\.64|\.H0_H0)?", text):
            bank = self.R if found[1] == "R" else self.UR
            if found[2] == "Z":
                zero = np.zeros(n, U64 if wide else U32)
                return lambda: zero
            k = int(found[2])
            if wide:
                return lambda: bank[k].astype(U64) | bank[k + 1].astype(U64) << U64(32)
            return lambda: bank[k]
        if found := re.fullmatch(r"c\[0x(\w+)\]\[(.*)\]", text):
            data, parts = self.banks[int(found[1], 16)], found[2].split("+")
            offset = sum(int(p, 0) for p in parts if "R" not in p)
            registers = [self.raw(p, "int", False) for p in parts if "R" in p]
            step = 8 if wide else 4
            if not registers:
                value = np.frombuffer(data, U64 if wide else U32, 1, offset)[0]
                value = np.full(n, value)
                return lambda: value
            numbers = np.frombuffer(data, np.uint8)

            def look():
                at = sum(r().astype(I64) for r in registers) + offset
                at = np.clip(at, 0, len(numbers) - step)
                out = np.zeros(n, U64)
                for b in range(step):
                    out |= numbers[at + b].astype(U64) << U64(8 * b)
                return out if wide else out.astype(U32)

            return look
        if kind in ("float", "f64") and not text.startswith(("0x", "-0x")):
            number = float(text.replace("+", "").replace("QNAN", "nan").replace("SNAN", "nan"))
            value = np.full(n, number, np.float64 if wide else np.float32)
            value = value.view(U64 if wide else U32)
        else:
            value = np.full(
                n, int(text, 0) & (2**64 - 1 if wide else 2**32 - 1), U64 if wide else U32
            )
        return lambda: value

    def predicate(self, text):
        negative, name = text.startswith("!"), text.lstrip("!")
        bank = self.UP if name[0] == "U" else self.P
        k = 7 if name.endswith("T") else int(name[-1])
        return (lambda: ~bank[k]) if negative else (lambda: bank[k])

    def writer(self, text):
        """Return a function that writes 32 bits where a mask says so."""
        bank = self.UR if text.startswith("U") else self.R
        name = text.replace(".reuse", "").lstrip("UR")
        if name == "Z":
            return lambda x, m, more=0: None
        k = int(name)

        def write(x, m, more=0):
            np.copyto(bank[k + more], x, where=m, casting="unsafe")

        return write

    def flag(self, text):
        bank = self.UP if text.startswith("U") else self.P
        if text.endswith("T"):
            return lambda x, m: None
        k = int(text[-1])
        return lambda x, m: np.copyto(bank[k], x, where=m)

    def address(self, text):
        """Return a function that gives the addresses of [R2.64+0x10], [R3+UR4+0x8] and the like."""
        inner = re.search(r"\[([^\[\]]*)\]$", text)[1]
        parts, offset, long = [], 0, "64" in text
        for part in inner.replace("-0x", "+-0x").split("+"):
            if "R" in part:
                base, _, tail = part.partition(".")
                wide = tail == "64"
                times = int(tail[1:]) if tail.startswith("X") else 1
                parts.append((self.raw(base, "int", wide), times))
            elif part:
                offset += int(part, 0)

        def read():
            found = np.full(self.threads, offset, I64)
            for get, times in parts:
                found = found + get().astype(I64) * times
            return found if long else found & 0xFFFFFFFF

        return read

    # ---- instructions

    def compile(self, i):
        """Return run(mask) of an instruction; what moves the program counter returns its place."""
        try:
            method = getattr(self, f"do_{i.name}", None) or getattr(self, f"do_{i.name[1:]}")
            return method(i, i.modifiers, i.operands)
        except Exception as error:
            message = f"{i.text}: {error!r}"
            self.unknown.append(message)

            def fail(m):
                raise NotImplementedError(message)

            return fail

    def arithmetic(self, i, o, f, kind="float"):
        to, reads = self.writer(o[0]), [self.reader(x, kind) for x in o[1:]]
        bits = np.float32 if kind == "float" else None

        def run(m):
            x = f(*(r() for r in reads))
            to(x.astype(bits).view(U32) if bits else x, m)

        return run

    def do_FADD(self, i, mods, o):
        return self.arithmetic(i, o, lambda a, b: a + b)

    def do_FMUL(self, i, mods, o):
        return self.arithmetic(i, o, lambda a, b: a * b)

    def do_FFMA(self, i, mods, o):
        return self.arithmetic(
            i, o[:4], lambda a, b, c: a.astype(np.float64) * b.astype(np.float64) + c
        )

    def do_MUFU(self, i, mods, o):
        f = {
            "RSQ": lambda x: 1 / np.sqrt(x), "RCP": lambda x: 1 / x, "EX2": np.exp2,
            "LG2": np.log2, "SQRT": np.sqrt,
        }[mods[0]]  # fmt: skip
        return self.arithmetic(i, o, f)

    def do_FMNMX(self, i, mods, o):
        to, a, b, p = (
            self.writer(o[0]),
            *(self.reader(x, "float") for x in o[1:3]),
            self.predicate(o[3]),
        )
        return lambda m: to(np.where(p(), np.fmin(a(), b()), np.fmax(a(), b())).view(U32), m)

    def do_FSEL(self, i, mods, o):
        to, a, b, p = (
            self.writer(o[0]),
            *(self.reader(x, "float") for x in o[1:3]),
            self.predicate(o[3]),
        )
        return lambda m: to(np.where(p(), a(), b()).astype(np.float32).view(U32), m)

    COMPARE = {
        "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal,
        "GT": np.greater, "GE": np.greater_equal,
    }  # fmt: skip
    JOIN = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}

    def setp(self, o, mods, kind, convert=lambda x: x):
        word = mods[0]
        either = kind != "int" and word.endswith("U") and word != "U"
        compare = self.COMPARE[word[:2]]
        join = self.JOIN[next(x for x in mods if x in self.JOIN)]
        one, other = self.flag(o[0]), self.flag(o[1])
        a, b, p = self.reader(o[2], kind), self.reader(o[3], kind), self.predicate(o[4])
        low = self.predicate(o[5]) if "EX" in mods else None

        def run(m):
            x, y = convert(a()), convert(b())
            found = compare(x, y)
            if either:
                found = found | np.isnan(x) | np.isnan(y)
            if low is not None:
                same = x == y
                strict = {
                    "GE": x > y,
                    "GT": x > y,
                    "LE": x < y,
                    "LT": x < y,
                    "NE": x != y,
                    "EQ": np.zeros_like(same),
                }[word]
                found = strict | same & low()
            q = p()
            first, second = join(found, q), join(~found, q)
            one(first, m)
            other(second, m)

        return run

    def do_FSETP(self, i, mods, o):
        return self.setp(o, [x for x in mods if x != "FTZ"], "float")

    def do_DSETP(self, i, mods, o):
        return self.setp(o, mods, "f64")

    def do_ISETP(self, i, mods, o):
        return self.setp(o, mods, "int", (lambda x: x) if "U32" in mods else signed)

    def do_DMUL(self, i, mods, o):
        to, a, b = self.writer(o[0]), self.reader(o[1], "f64"), self.reader(o[2], "f64")

        def run(m):
            self.pair(to, (a() * b()).view(U64), m)

        return run

    def pair(self, to, x, m):
        to(x & LOW, m)
        to(x >> U64(32), m, 1)

    def do_F2F(self, i, mods, o):
        to, kinds = self.writer(o[0]), {"F32": "float", "F64": "f64"}
        a = self.reader(o[1], kinds[mods[-1]])
        if mods[-2] == "F32":
            return lambda m: to(a().astype(np.float32).view(U32), m)
        return lambda m: self.pair(to, a().astype(np.float64).view(U64), m)

    def do_I2F(self, i, mods, o):
        wide = "U64" in mods or "S64" in mods
        to, a = self.writer(o[0]), self.reader(o[1], "u64" if wide else "int")
        of = (lambda x: x) if wide or "U32" in mods else signed
        if "F64" in mods:
            return lambda m: self.pair(to, of(a()).astype(np.float64).view(U64), m)
        return lambda m: to(of(a()).astype(np.float32).view(U32), m)

    do_I2FP = do_I2F

    def do_F2I(self, i, mods, o):
        to, a = self.writer(o[0]), self.reader(o[1], "float")
        top = 2.0**63 if "U64" in mods else 2.0**32 - 1

        def run(m):
            with np.errstate(invalid="ignore"):
                x = np.clip(np.nan_to_num(np.trunc(a().astype(np.float64))), 0, top).astype(U64)
            if "U64" in mods:
                self.pair(to, x, m)
            else:
                to(x, m)

        return run

    def do_FCHK(self, i, mods, o):
        to = self.flag(o[0])
        return lambda m: to(np.zeros(self.threads, bool), m)

    def flags(self, o):
        """Split operands into what is written, predicates that are, and the rest."""
        flags = list(itertools.takewhile(FLAG.fullmatch, o if FLAG.fullmatch(o[0]) else o[1:]))
        rest = o[len(flags) :] if FLAG.fullmatch(o[0]) else [o[0], *o[1 + len(flags) :]]
        return self.writer(rest[0]), [self.flag(x) for x in flags], rest[1:]

    def do_IADD3(self, i, mods, o):
        to, outs, rest = self.flags(o)
        reads = [self.reader(x.lstrip("-~")) for x in rest[:3]]
        signs = [x[0] if x[0] in "-~" else "" for x in rest[:3]]
        if any(re.match(r"-(0x|\d)", x) for x in rest[:3]):
            signs = [
                "" if re.match(r"-(0x|\d)", x) else s for x, s in zip(rest, signs, strict=False)
            ]
            reads = [
                self.reader(x if s == "" else x[1:]) for x, s in zip(rest, signs, strict=False)
            ]
        carries = [self.predicate(x) for x in rest[3:]]

        def run(m):
            total = np.zeros(self.threads, U64)
            for r, s in zip(reads, signs, strict=True):
                x = r()
                total += x.astype(U64) if not s else (~x).astype(U64) + U64(s == "-")
            for c in carries:
                total += c().astype(U64)
            to(total & LOW, m)
            for k, out in enumerate(outs):
                out(total >> U64(32) > k, m)

        return run

    def do_VIADD(self, i, mods, o):
        return self.do_IADD3(i, mods, [*o, "RZ"])

    def do_IMAD(self, i, mods, o):
        to, outs, rest = self.flags(o)
        a, b = (self.reader(x) for x in rest[:2])
        wide = "WIDE" in mods
        c = self.reader(rest[2], "u64" if wide or "HI" in mods else "int")
        carries = [self.predicate(x) for x in rest[3:]]
        of = (lambda x: x.astype(U64)) if "U32" in mods else (lambda x: signed(x).astype(U64))

        def run(m):
            product = of(a()) * of(b())
            if wide:
                total = product + c()
                self.pair(to, total, m)
                for out in outs:
                    out(total < product, m)
                return
            if "HI" in mods:
                to((product + c()) >> U64(32), m)
                return
            total = (product & LOW) + c().astype(U64)
            for p in carries:
                total = total + p().astype(U64)
            to(total & LOW, m)
            for out in outs:
                out(total >> U64(32) > 0, m)

        return run

    def do_LEA(self, i, mods, o):
        to, outs, rest = self.flags(o)
        if "HI" not in mods:
            a, b, shift = self.reader(rest[0]), self.reader(rest[1]), U64(int(rest[2], 0))

            def run(m):
                total = (a().astype(U64) << shift & LOW) + b()
                to(total & LOW, m)
                for out in outs:
                    out(total >> U64(32) > 0, m)

            return run
        spread = "SX32" in mods
        a, b = self.reader(rest[0]), self.reader(rest[1])
        high = None if spread else self.reader(rest[2])
        shift, *more = rest[2:] if spread else rest[3:]
        shift, carries = U64(32 - int(shift, 0)), [self.predicate(x) for x in more]

        def run(m):
            x = (
                signed(a()).astype(U64)
                if spread
                else a().astype(U64) | high().astype(U64) << U64(32)
            )
            total = (x >> shift & LOW) + b()
            for p in carries:
                total = total + p().astype(U64)
            to(total & LOW, m)
            for out in outs:
                out(total >> U64(32) > 0, m)

        return run

    def do_SHF(self, i, mods, o):
        to, a, s, c = self.writer(o[0]), *(self.reader(x) for x in o[1:4])
        left, high = mods[0] == "L", "HI" in mods
        kind = next(x for x in mods if x in ("U32", "S32", "U64", "S64"))
        most = 32 if "32" in kind else 63

        def run(m):
            by = s().astype(U64)
            by = by & U64(most if most > 32 else 31) if "W" in mods else np.minimum(by, U64(most))
            x = a().astype(U64) | c().astype(U64) << U64(32)
            if left:
                # 32 bits: the low word moves into the high one.
                found = x << by
                to(found >> U64(32) if high else found & LOW, m)
            elif high and kind == "S32":
                to((signed(c()) >> by.astype(I64)).astype(U64) & LOW, m)
            elif high:
                to(c().astype(U64) >> by, m)
            elif kind[0] == "S":
                to((x.view(I64) >> by.astype(I64)).view(U64) & LOW, m)
            else:
                to(x >> by & LOW, m)

        return run

    def table(self, reads, lut):
        """Return the bits of a function of three, given by its eight values."""

        def run():
            a, b, c = (r() for r in reads)
            found = np.zeros_like(a)
            for k in range(8):
                if lut >> k & 1:
                    found |= (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
            return found

        return run

    def do_LOP3(self, i, mods, o):
        to, outs, rest = self.flags(o)
        f = self.table([self.reader(x) for x in rest[:3]], int(rest[3], 0))

        def run(m):
            x = f()
            to(x, m)
            for out in outs:
                out(x != 0, m)

        return run

    def do_PLOP3(self, i, mods, o):
        reads = [self.predicate(x) for x in o[2:5]]
        jobs = [(self.flag(o[k]), self.table(reads, int(o[5 + k], 0))) for k in (0, 1)]

        def run(m):
            for to, x in [(to, f()) for to, f in jobs]:
                to(x, m)

        return run

    def do_SEL(self, i, mods, o):
        to, a, b, p = self.writer(o[0]), self.reader(o[1]), self.reader(o[2]), self.predicate(o[3])
        return lambda m: to(np.where(p(), a(), b()), m)

    def do_IMNMX(self, i, mods, o):
        to, a, b, p = self.writer(o[0]), self.reader(o[1]), self.reader(o[2]), self.predicate(o[3])
        of = (lambda x: x) if "U32" in mods else signed

        def run(m):
            x, y = of(a()), of(b())
            to(np.where(p(), np.minimum(x, y), np.maximum(x, y)), m)

        return run

    do_VIMNMX = do_IMNMX

    def do_VIADDMNMX(self, i, mods, o):
        to, p = self.writer(o[0]), self.predicate(o[4])
        a, b, c = (self.reader(x) for x in o[1:4])
        of = (lambda x: x) if "U32" in mods else signed

        def run(m):
            x, y = of(a() + b()), of(c())
            to(np.where(p(), np.minimum(x, y), np.maximum(x, y)), m)

        return run

    def do_IABS(self, i, mods, o):
        to, a = self.writer(o[0]), self.reader(o[1])
        return lambda m: to(np.abs(signed(a())), m)

    def do_PRMT(self, i, mods, o):
        to, a, s, b = self.writer(o[0]), *(self.reader(x) for x in o[1:4])

        def run(m):
            x, how = a().astype(U64) | b().astype(U64) << U64(32), s().astype(U64)
            out = np.zeros(self.threads, U64)
            for k in range(4):
                nibble = how >> U64(4 * k)
                byte = x >> ((nibble & U64(7)) * U64(8)) & U64(255)
                sign = np.where(byte >> U64(7) != 0, U64(255), U64(0))
                out |= np.where(nibble & U64(8) != 0, sign, byte) << U64(8 * k)
            to(out, m)

        return run

    def do_P2R(self, i, mods, o):
        to, old, mask = self.writer(o[0]), self.reader(o[2]), self.reader(o[3])

        def run(m):
            bits = sum(self.P[k].astype(U32) << U32(k) for k in range(7))
            to(bits & mask() | old() & ~mask(), m)

        return run

    def do_R2P(self, i, mods, o):
        x, mask = self.reader(o[1]), self.reader(o[2])

        def run(m):
            for k in range(7):
                on = m & (mask() >> U32(k) & U32(1) != 0)
                np.copyto(self.P[k], x() >> U32(k) & U32(1) != 0, where=on)

        return run

    def do_MOV(self, i, mods, o):
        to, a = self.writer(o[0]), self.reader(o[1])
        return lambda m: to(a(), m)

    do_R2UR = do_MOV

    def do_HFMA2(self, i, mods, o):
        assert o[1].strip("-") == "RZ", "only as a constant"
        assert o[2].strip("-") == "RZ", "only as a constant"
        high, low = (int(np.float16(float(x)).view(np.uint16)) for x in o[3:5])
        to, value = self.writer(o[0]), np.full(self.threads, high << 16 | low, U32)
        return lambda m: to(value, m)

    def do_CS2R(self, i, mods, o):
        assert o[1] == "SRZ"
        to, zero = self.writer(o[0]), np.zeros(self.threads, U64)
        return lambda m: self.pair(to, zero, m)

    def do_S2R(self, i, mods, o):
        to, value = self.writer(o[0]), self.special[o[1]]
        return lambda m: to(value, m)

    do_S2UR = do_S2R

    def do_LDC(self, i, mods, o):
        to = self.writer(o[0])
        if "64" in mods:
            a = self.reader(o[1], "u64")
            return lambda m: self.pair(to, a(), m)
        if "U8" in mods:
            bank, at = re.fullmatch(r"c\[0x(\w+)\]\[0x(\w+)\]", o[1]).groups()
            value = np.full(self.threads, self.banks[int(bank, 16)][int(at, 16)], U32)
            return lambda m: to(value, m)
        a = self.reader(o[1])
        return lambda m: to(a(), m)

    do_ULDC = do_LDC

    # ---- memory

    def words(self, mods):
        return 4 if "128" in mods else 2 if "64" in mods else 1

    def space(self, name, at, m):
        """Return bytes and places in them, for the threads that a mask names."""
        if name in ("LDS", "STS"):
            return self.shared, at
        if name in ("LDL", "STL"):
            return self.local.reshape(-1), at % 4096 + np.arange(self.threads) * 4096
        if name in ("LD", "ST") and (at[m] < WINDOW + len(self.shared)).all():
            return self.shared, at - WINDOW
        return self.memory, at - self.base

    def move(self, i, m, at):
        """Count what a load or a store asks for; return whether a warp has to go beyond L1."""
        size = 4 * self.words(i.modifiers)
        far = np.zeros(self.warps, bool)
        for w in np.flatnonzero(m.reshape(-1, 32).any(1)).tolist():
            part = slice(32 * w, 32 * w + 32)
            if i.name in ("LDS", "STS"):
                key = size, (at[part] - at[part].min() // 128 * 128).tobytes(), m[part].tobytes()
                if key not in self.known:
                    self.known[key] = conflicts(at[part], m[part], size)
                self.conflicts[i.pc] += self.known[key]
                continue
            places = at[part][m[part]].tolist()
            sectors = {a >> 5 for a in places}
            self.sectors[i.pc] += len(sectors)
            for sector in sectors:
                if sector in self.cache:
                    self.cache.move_to_end(sector)
                    continue
                self.missed += 1
                far[w] = i.name[:2] == "LD"
                self.cache[sector] = None
                if len(self.cache) > self.cached:
                    self.cache.popitem(last=False)
        return far

    def do_load(self, i, mods, o):
        to, address, count = self.writer(o[0]), self.address(o[1]), self.words(mods)
        byte = "U8" in mods

        def run(m):
            at = address()
            data, places = self.space(i.name, at, m)
            places = np.where(m, places, 0)
            far = self.move(i, m, at)
            if byte:
                to(data[places], m)
                return far
            for k in range(count):
                x = np.zeros(self.threads, U32)
                x[m] = data[places[m][:, None] + np.arange(4 * k, 4 * k + 4)].view(U32)[:, 0]
                to(x, m, k)
            return far

        return run

    do_LDG = do_LDS = do_LDL = do_LD = do_load

    def do_store(self, i, mods, o):
        name = o[1].replace(".reuse", "")
        reads = [
            self.raw("RZ" if name == "RZ" else f"R{int(name[1:]) + k}", "int", False)
            for k in range(self.words(mods))
        ]
        address = self.address(o[0])

        def run(m):
            at = address()
            data, places = self.space(i.name, at, m)
            self.move(i, m, at)
            for k, r in enumerate(reads):
                value = np.ascontiguousarray(r()[m])[:, None].view(np.uint8)
                data[places[m][:, None] + np.arange(4 * k, 4 * k + 4)] = value

        return run

    do_STG = do_STS = do_STL = do_ST = do_store

    # ---- control: returns where to go

    def do_nothing(self, i, mods, o):
        return lambda m: None

    do_BSSY = do_BSYNC = do_NOP = do_WARPSYNC = do_BREAK = do_YIELD = do_BAR = do_EXIT = do_nothing

    def do_BRA(self, i, mods, o):
        *conditions, target = o
        target = int(target, 16)
        also = [self.predicate(c) for c in conditions if "P" in c]

        def run(m):
            for p in also:
                m = m & p()
            return m, target

        return run

    do_CALL = do_BRA

    def do_RET(self, i, mods, o):
        a = self.reader(o[0].split()[0])
        return lambda m: (m, a().astype(I64))

    def do_BRX(self, i, mods, o):
        register, _, offset = o[0].partition(" ")
        a, offset = self.reader(register), int(offset, 0)
        return lambda m: (m, signed(a()) + offset + i.pc + 16)

    # ---- the run

    def run(self):
        """Run the block to its end."""
        n, code = self.threads, self.kernel.code
        pcs, alive, waiting = np.zeros(n, I64), np.ones(n, bool), np.zeros(n, bool)
        while alive.any():
            ready = alive & ~waiting
            if not ready.any():
                self.clock[:] = self.clock.max() + LATENCY["BAR"]
                waiting[:] = False
                continue
            pc = int(pcs[ready].min())
            mask = ready & (pcs == pc)
            others = pcs[ready & ~mask]
            until = int(others.min()) if len(others) else 1 << 60
            active = mask.reshape(-1, 32).any(1)
            moved = False
            while not moved and pc < until:
                i = code[pc]
                self.issued[pc] += int(active.sum())
                m = mask
                if i.guard:
                    m = mask & self.guards[pc]()
                with np.errstate(all="ignore"):
                    result = self.compiled[pc](m)
                self.tick(i, active, result if i.unit in ("shared", "global") else None)
                if i.name == "EXIT":
                    alive &= ~m
                    moved = True
                elif i.name == "BAR":
                    waiting |= m
                    moved = True
                elif i.name in ("BRA", "CALL", "RET", "BRX"):
                    goes, target = result
                    pcs[mask] = pc + 16
                    pcs[goes] = target[goes] if isinstance(target, np.ndarray) else target
                    moved = True
                    continue
                pc += 16
                if moved:
                    pcs[mask] = pc
            if not moved:
                pcs[mask] = pc

    def tick(self, i, active, far):
        clock, ready = self.clock, self.ready
        before = int(clock[0])
        for b in range(6):
            if i.wait >> b & 1:
                np.copyto(clock, np.maximum(clock, ready[b]), where=active)
        if i.write < 6:
            time = LATENCY.get(i.name, 20)
            time = np.where(far, FAR, time) if far is not None else time
            np.copyto(ready[i.write], np.maximum(ready[i.write], clock + time), where=active)
        if i.read < 6:
            np.copyto(ready[i.read], np.maximum(ready[i.read], clock + READ), where=active)
        clock[active] += i.stall
        self.spent[i.pc] += int(clock[0]) - before

    def counts(self):
        """Return how many warp instructions each unit has executed."""
        found = collections.Counter()
        for pc, count in self.issued.items():
            found[self.kernel.code[pc].unit] += count
        return found


def conflicts(at, m, size):
    """Return the cycles of shared memory for a warp: 32 banks of 4 bytes, 128 bytes at a time."""
    per, cycles = 128 // size, 0
    for first in range(0, 32, per):
        on = at[first : first + per][m[first : first + per]]
        if not len(on):
            continue
        words = np.unique((on[:, None] + np.arange(0, size, 4)) >> 2)
        cycles += int(np.bincount(words & 31).max())
    return cycles
