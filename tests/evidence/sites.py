"""Finds the sites of mutations in C++ sources, by libclang, and rewrites them. mutate.py and the test of both use it.

A site is one expression or statement, and one error that it can make:

  bound       a < b becomes a <= b, a > b becomes a >= b, and the reverse
  equality    a == b becomes a != b, and the reverse
  arithmetic  a + b becomes a - b, and the reverse
  bits        a & b becomes a | b, a << b becomes a >> b, and the reverse
  junction    a && b becomes a || b, and the reverse
  condition   the condition of an if, a while or a ?: is negated
  order       a seq_cst store or fence is relaxed. Other orders make no difference in the machine code of x86.
  wake        a call that wakes a thread or a process is dropped
  error       the early return of a failed check is skipped; the check itself runs

A site's address is the qualified name of its function, with the types of the parameters where the name is overloaded, the
kind, and the place among the sites of the kind in the function. It has no file and no line, so it survives moves of code.
Constant expressions, static_assert, default arguments, case labels, unevaluated operands and the bodies of macros have no
sites; nor has code outside functions."""
import ctypes
import dataclasses
import re
import sys

try:
    import clang.cindex as cindex
except ImportError:  # Debian's package serves Debian's own Python
    sys.path.append("/usr/lib/python3/dist-packages")
    import clang.cindex as cindex

KINDS = ("error", "condition", "junction", "equality", "bound", "bits", "arithmetic", "order", "wake")
SWAPS = {"<": ("bound", "<="), "<=": ("bound", "<"), ">": ("bound", ">="), ">=": ("bound", ">"),
         "==": ("equality", "!="), "!=": ("equality", "=="), "+": ("arithmetic", "-"), "-": ("arithmetic", "+"),
         "&": ("bits", "|"), "|": ("bits", "&"), "<<": ("bits", ">>"), ">>": ("bits", "<<"),
         "&&": ("junction", "||"), "||": ("junction", "&&")}
WAKES = re.compile(r"^(ring|wake(_\w+)?|\w+_wake|notify_(one|all)|fi_cq_signal)$")
FAILURE = re.compile(r"fault|Fault::(?!None)|fail|error|refuse|raise|\bfalse\b|nullptr|nullopt|return -1|return std::errc")
SEQ_CST = re.compile(r"\bstd::memory_order_seq_cst\b|\bstd::memory_order::seq_cst\b|\b__ATOMIC_SEQ_CST\b")
RELAXED = {"__ATOMIC_SEQ_CST": "__ATOMIC_RELAXED"}
NUMBERS = range(cindex.TypeKind.BOOL.value, cindex.TypeKind.LONGDOUBLE.value + 1)
K = cindex.CursorKind
FUNCTIONS = (K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.DESTRUCTOR, K.CONVERSION_FUNCTION, K.FUNCTION_TEMPLATE)
SCOPES = (K.NAMESPACE, K.CLASS_DECL, K.STRUCT_DECL, K.UNION_DECL, K.CLASS_TEMPLATE, K.LINKAGE_SPEC, K.UNEXPOSED_DECL,
          K.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION)
SKIPPED = (K.STATIC_ASSERT, K.PARM_DECL, K.CXX_UNARY_EXPR, K.ENUM_DECL, K.TYPE_ALIAS_DECL, K.TYPEDEF_DECL)


@dataclasses.dataclass
class Site:
    """One place: the text [start, end) of a file. `parts` are the texts inside that are code of their own."""
    file: str
    kind: str
    start: int
    end: int
    function: str
    ordinal: int = 0
    parts: tuple = ()
    operator: str = ""
    number: int = 0

    @property
    def address(self):
        return f"{self.function} {self.kind} {self.ordinal}"


def kind_of(cursor):
    """The kind, or None for one that the bindings do not know yet."""
    try:
        return cursor.kind
    except ValueError:
        return None


def balanced(text):
    """Whether brackets close in order and no preprocessor line is inside."""
    depth = []
    plain = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'', "0", text)
    for letter in plain:
        if letter in "([{":
            depth.append(letter)
        elif letter in ")]}":
            if not depth or "([{".index(depth.pop()) != ")]}".index(letter):
                return False
    return not depth and not re.search(r"^\s*#", text, re.MULTILINE)


def closing(text, at):
    """The place of the bracket that closes the one at `at`, and the top-level semicolons between."""
    depth, semicolons = 0, []
    for match in re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//[^\n]*|[()\[\]{};]').finditer(text, at):
        if match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth -= 1
            if depth == 0:
                return match.start(), semicolons
        elif match[0] == ";" and depth == 1:
            semicolons.append(match.start())
    return -1, []


class Finder:
    """Collects the sites of translation units; each file once."""

    def __init__(self, texts):
        self.texts = texts  # file: its bytes decoded as latin-1, so that a place in the text is an offset in the file
        self.sites = {}
        self.files = {}
        self.done = set()
        self.seen = set()

    def place(self, location):
        """The file, if it is one of the texts', and the offset. Arguments of macros are at their own place."""
        file, offset = cindex.c_object_p(), ctypes.c_uint()
        cindex.conf.lib.clang_getFileLocation(location, ctypes.byref(file), None, None, ctypes.byref(offset))
        key = ctypes.cast(file, ctypes.c_void_p).value
        if key not in self.files:
            name = cindex.File(file).name if key else ""
            self.files[key] = name if name in self.texts else None
        return self.files[key], offset.value

    def extent(self, cursor):
        """(file, start, end), or None where the text is not the cursor's own."""
        file, start = self.place(cursor.extent.start)
        other, end = self.place(cursor.extent.end)
        if file is None or file != other or not start < end or not balanced(self.texts[file][start:end]):
            return None
        return file, start, end

    def add(self, kind, extent, function, **more):
        key = (extent, kind)
        if key not in self.sites:
            self.sites[key] = Site(extent[0], kind, extent[1], extent[2], function, **more)

    def read(self, unit):
        self.files = {}
        self.seen = set()
        self.scope(unit.cursor)
        self.done |= self.seen

    def scope(self, cursor):
        for child in cursor.get_children():
            file, start = self.place(child.extent.start)
            if file is None or file in self.done:
                continue
            self.seen.add(file)
            kind = kind_of(child)
            if kind in FUNCTIONS:
                self.function(child, file, start)
            elif kind in SCOPES:
                self.scope(child)

    def function(self, cursor, file, start):
        body = [c for c in cursor.get_children() if kind_of(c) in (K.COMPOUND_STMT, K.CXX_TRY_STMT)]
        if not body or re.search(r"\bconsteval\b", self.texts[file][start:self.place(body[0].extent.start)[1]]):
            return
        names, scope = [], cursor
        while scope is not None and scope.kind != K.TRANSLATION_UNIT:
            names.insert(0, scope.spelling)
            scope = scope.semantic_parent
        name = "::".join(n for n in names if n and not n.startswith("("))
        parameters = cursor.displayname[len(cursor.spelling):]
        for part in body:
            self.code(part, (name, parameters))

    def code(self, cursor, function, parent=None):
        kind = kind_of(cursor)
        if kind in SKIPPED or kind == K.VAR_DECL and self.is_constant(cursor):
            return
        children = list(cursor.get_children())
        if kind in (K.STRUCT_DECL, K.CLASS_DECL):  # local to the function
            self.scope(cursor)
            return
        if kind == K.BINARY_OPERATOR and len(children) == 2:
            self.binary(cursor, children, function)
        elif kind in (K.IF_STMT, K.WHILE_STMT):
            children = self.conditional(cursor, children, function)
        elif kind == K.CONDITIONAL_OPERATOR and children:
            extent = self.extent(children[0])
            if extent:
                self.add("condition", extent, function)
        elif kind == K.CASE_STMT:
            children = children[1:]
        elif kind == K.CALL_EXPR:
            self.call(cursor, parent, function)
        for child in children:
            self.code(child, function, cursor)

    def is_constant(self, cursor):
        extent = self.extent(cursor)
        return extent is None or "constexpr" in self.texts[extent[0]][extent[1]:extent[2]].split("=")[0]

    def binary(self, cursor, children, function):
        whole, left, right = (self.extent(c) for c in (cursor, *children))
        if not (whole and left and right and whole[1] == left[1] and whole[2] == right[2] and left[2] <= right[1]):
            return
        between = self.texts[whole[0]][left[2]:right[1]].strip()
        if between not in SWAPS:
            return
        kind, to = SWAPS[between]
        if kind in ("arithmetic", "bits"):
            types = [c.type.get_canonical().kind for c in children]
            pointer = types[0] == cindex.TypeKind.POINTER and types[1].value in NUMBERS
            plain = all(t.value in NUMBERS or t in (cindex.TypeKind.DEPENDENT, cindex.TypeKind.UNEXPOSED) for t in types)
            if not plain and not (pointer and kind == "arithmetic"):
                return
        self.add(kind, whole, function, parts=(left[1:], right[1:]), operator=to)

    def conditional(self, cursor, children, function):
        """The condition of an if or a while. Returns the children to go on with."""
        extent = self.extent(cursor)
        if extent is None:
            return children
        file, start, _ = extent
        text = self.texts[file]
        head = re.compile(r"(if|while)\s*(constexpr|consteval)?\s*(?=\()").match(text, start)
        if not head:
            return children
        end, semicolons = closing(text, head.end())
        first = semicolons[-1] + 1 if semicolons else head.end() + 1
        inside = [c for c in children if (self.place(c.extent.start)[1]) < end]
        after = children[len(inside):]
        if head[2]:
            return after
        condition = [c for c in inside if self.extent(c) and text[first:end].strip() == text[slice(*self.extent(c)[1:])]]
        if not condition or kind_of(condition[-1]) in (K.DECL_STMT, K.VAR_DECL):
            return children
        whole = self.extent(condition[-1])
        self.add("condition", whole, function)
        if head[1] == "if" and len(after) == 1 and self.is_failure(after[0], text[whole[1]:whole[2]]):
            self.add("error", whole, function)
        return children

    def is_failure(self, branch, condition):
        if kind_of(branch) == K.COMPOUND_STMT:
            statements = list(branch.get_children())
            last = statements[-1] if statements else branch
        else:
            last = branch
        extent = self.extent(branch)
        return kind_of(last) == K.RETURN_STMT and extent is not None and \
            FAILURE.search(condition + " " + self.texts[extent[0]][extent[1]:extent[2]]) is not None

    def call(self, cursor, parent, function):
        whole = self.extent(cursor)
        if whole is None:
            return
        text = self.texts[whole[0]][whole[1]:whole[2]]
        name = cursor.spelling
        if not name:  # of a dependent type
            match = re.search(r"(\w+)\s*\([^()]*\)$", text)
            name = match[1] if match else ""
        if name in ("store", "atomic_thread_fence", "__atomic_store_n") and SEQ_CST.search(text):
            self.add("order", whole, function)
        if WAKES.match(name) and parent is not None and kind_of(parent) in (K.COMPOUND_STMT, K.IF_STMT, K.WHILE_STMT, K.FOR_STMT):
            self.add("wake", whole, function)

    def result(self):
        """The sites with their final addresses, in the order of files and places."""
        same = {(s.file, s.start, s.end) for s in self.sites.values() if s.operator in ("==", "!=")}  # their negations
        sites = sorted((s for s in self.sites.values() if s.kind != "condition" or (s.file, s.start, s.end) not in same),
                       key=lambda s: (s.file, s.start, -s.end, KINDS.index(s.kind)))
        overloads, homes = {}, {}
        for site in sites:
            overloads.setdefault(site.function[0], set()).add(site.function[1])
            homes.setdefault(site.function, set()).add(site.file)
        counts = {}
        for site in sites:
            name = site.function[0] + (site.function[1] if len(overloads[site.function[0]]) > 1 else "")
            if len(homes[site.function]) > 1:  # functions of one name, each known in its own file only
                name += " of " + re.sub(r"^.*/|\.\w+$", "", site.file)
            site.function = name
            counts[name, site.kind] = counts.get((name, site.kind), 0) + 1
            site.ordinal = counts[name, site.kind]
        return sites


def rewrite(text, sites):
    """The text with every site of it as a choice between the error and the original, and the mutants of each line."""
    ordered = sorted(sites, key=lambda s: (s.start, -s.end, KINDS.index(s.kind)))

    def emit(start, end, inside):
        out, at = [], start
        while inside:
            site = inside[0]
            rest = [s for s in inside[1:] if s.start < site.end]
            inside = [s for s in inside[1:] if s.start >= site.end]
            out += [text[at:site.start], replace(site, rest)]
            at = site.end
        return "".join(out) + text[at:end]

    def replace(site, rest):
        on, original = f"::osc_mutant::on({site.number})", text[site.start:site.end]
        code = emit(site.start, site.end, rest)
        if site.kind == "condition":
            return f"({on} != static_cast<bool>({code}))"
        if site.kind == "error":
            return f"(static_cast<bool>({code}) && !{on})"
        if site.kind == "wake":
            return f"({on} ? static_cast<void>(0) : static_cast<void>({code}))"
        if site.kind == "order":
            return f"({on} ? {SEQ_CST.sub(lambda m: RELAXED.get(m[0], 'std::memory_order_relaxed'), original)} : {code})"
        left, right = (text[a:b] for a, b in site.parts)
        return f"({on} ? (({left}) {site.operator} ({right})) : ({code}))"

    result = emit(0, len(text), ordered)
    lines = {}
    for number, line in enumerate(result.split("\n"), 1):
        found = {int(n) for n in re.findall(r"osc_mutant::on\((\d+)\)", line)}
        if found:
            lines[number] = found
    return result, lines
