# SPDX-License-Identifier: Apache-2.0
"""Where a source of C or Lua can be changed a little, and how: what run.py draws its mutants from.

A mutant is (kind, start, end, replacement) over the text of one file. Only what the grammar makes plain is touched: comments, strings and
preprocessor lines stay, and a pointer's star is told from a product by the spaces around it.
"""
import re
from collections import namedtuple

Mutant = namedtuple("Mutant", "kind start end replacement")
Token = namedtuple("Token", "kind text start end")

C_TOKENS = [
    ("comment", r"/\*.*?\*/|//[^\n]*"),
    ("preprocessor", r"(?m:^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)"),
    ("string", r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''),
    ("number", r"0[xX][0-9a-fA-F]+[uUlL]*|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?[fFuUlL]*"),
    ("name", r"[A-Za-z_]\w*"),
    ("operator", r"<<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%<>=!&|^~?:;,.(){}\[\]]"),
]
LUA_TOKENS = [
    ("comment", r"--\[(?P<level>=*)\[.*?\](?P=level)\]|--[^\n]*"),
    ("string", r'"(?:[^"\\\n]|\\.|\\\n)*"|\'(?:[^\'\\\n]|\\.|\\\n)*\'|\[\[.*?\]\]'),
    ("number", r"0[xX][0-9a-fA-F]+|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?"),
    ("name", r"[A-Za-z_]\w*"),
    ("operator", r"\.\.\.|\.\.|::|//|<<|>>|<=|>=|==|~=|[-+*/%^#&|~<>=;:,.(){}\[\]]"),
]
KEYWORDS = {
    "c": set("auto break case char const continue default do double else enum extern float for goto if inline int long register restrict "
             "return short signed sizeof static struct switch typedef union unsigned void volatile while".split()),
    "lua": set("and break do else elseif end for function goto if in local not or repeat return then until while".split()),
}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "//": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
COMPARISON = {"<": ("<=", ">"), "<=": ("<", ">"), ">": (">=", "<"), ">=": (">", "<"), "==": ("!=",), "!=": ("==",), "~=": ("==",)}
LOGIC = {"&&": "||", "||": "&&", "and": "or", "or": "and"}
PAIRS = {"fmin": "fmax", "fmax": "fmin", "min": "max", "max": "min", "larger": "smaller", "smaller": "larger", "floor": "ceil",
         "ceil": "floor"}


def tokens_of(text, language):
    patterns = C_TOKENS if language == "c" else LUA_TOKENS
    pattern = re.compile("|".join("(?P<%s>%s)" % pair for pair in patterns), re.S)
    tokens = [Token(m.lastgroup, m.group(), m.start(), m.end()) for m in pattern.finditer(text)]
    return [token for token in tokens if token.kind not in ("comment", "preprocessor")]


class Source:
    def __init__(self, text, language):
        self.text, self.language, self.tokens = text, language, tokens_of(text, language)
        self.close = self.match_brackets()

    def match_brackets(self):
        """Index of the closing bracket for each opening one."""
        close, stack = {}, []
        for i, token in enumerate(self.tokens):
            if token.text in "([{" and token.kind == "operator":
                stack.append(i)
            elif token.text in ")]}" and token.kind == "operator" and stack:
                close[stack.pop()] = i
        return close

    def is_value(self, i):
        """Can the token at i end a value, so that an operator behind it is binary?"""
        token = self.tokens[i]
        if token.kind == "name":
            return token.text not in KEYWORDS[self.language] or token.text == "end"
        return token.kind in ("number", "string") or token.text in (")", "]")

    def is_binary(self, i):
        if i == 0 or i + 1 >= len(self.tokens) or not self.is_value(i - 1):
            return False
        before, after = self.tokens[i - 1].end < self.tokens[i].start, self.tokens[i].end < self.tokens[i + 1].start
        return before and after if self.tokens[i].text in "*&" else before == after

    def end_of_primary(self, i):
        """Index behind the value that starts at token i: a name or number with its selectors and calls; None when it is none."""
        if i >= len(self.tokens) or not (self.tokens[i].kind in ("name", "number") or self.tokens[i].text == "("):
            return None
        if self.tokens[i].text in KEYWORDS[self.language]:
            return None
        i = self.close.get(i, i) + 1 if self.tokens[i].text == "(" else i + 1
        while i < len(self.tokens):
            text = self.tokens[i].text
            if text in (".", "->", ":") and self.tokens[i].start == self.tokens[i - 1].end and i + 1 < len(self.tokens):
                i += 2
            elif text in ("(", "[") and self.tokens[i].start == self.tokens[i - 1].end and i in self.close:
                i = self.close[i] + 1
            else:
                return i
        return i

    def mutants(self):
        for i, token in enumerate(self.tokens):
            yield from self.of_token(i, token)
        yield from self.of_conditions()
        yield from self.of_statements()

    def of_token(self, i, token):
        if token.kind == "number":
            yield from self.of_number(token) if not self.is_dimension(i) else ()
        elif token.text in COMPARISON and self.is_binary(i):
            for other in COMPARISON[token.text]:
                yield Mutant("comparison", token.start, token.end, "~=" if other == "!=" and self.language == "lua" else other)
        elif token.text in LOGIC:
            yield Mutant("logic", token.start, token.end, LOGIC[token.text])
        elif token.text in ARITHMETIC and (self.is_binary(i) or token.text.endswith("=")):
            yield Mutant("arithmetic", token.start, token.end, ARITHMETIC[token.text])
            end = self.end_of_primary(i + 1)
            if end and not token.text.endswith("="):
                yield Mutant("term", self.tokens[i - 1].end, self.tokens[end - 1].end, "")
        elif token.text in ("!", "not"):
            end = token.end + (1 if token.text == "not" and self.text[token.end] == " " else 0)
            yield Mutant("logic", token.start, end, "")
        elif token.kind == "name" and i + 1 < len(self.tokens) and self.tokens[i + 1].text == "(":
            if token.text in PAIRS:
                yield Mutant("min/max", token.start, token.end, PAIRS[token.text])
            yield from self.swapped(i)

    def is_dimension(self, i):
        """Is the number at i the dimension of an array that is declared there? More of it makes no difference, less none that is defined."""
        j = i
        while self.language == "c" and j > 2 and self.tokens[j].text not in "[;,{}()=":
            j -= 1
        return (j > 2 and self.tokens[j].text == "[" and self.tokens[j - 1].kind == "name" and
                (self.tokens[j - 2].kind == "name" and self.tokens[j - 2].text != "return" or self.tokens[j - 2].text == "*"))

    def of_number(self, token):
        text, value = token.text, None
        if re.fullmatch(r"\d+", text):
            value = int(text)
            replacements = [str(value + 1), str(value - 1) if value else None, str(value * 2), "0"]
        elif re.fullmatch(r"[\d.]+(?:[eE][+-]?\d+)?", text):
            replacements = ["(%s * 2)" % text, "0.0"]
        else:
            return
        for other in sorted({other for other in replacements if other is not None and other != text}):
            yield Mutant("constant", token.start, token.end, other)

    def arguments(self, i):
        """Spans of the arguments of the call whose bracket is at token i."""
        spans, start, depth = [], i + 1, 0
        for j in range(i + 1, self.close[i] + 1):
            text = self.tokens[j].text
            if j == self.close[i] or (text == "," and depth == 0):
                if j == start:
                    return []
                spans.append((self.tokens[start].start, self.tokens[j - 1].end))
                start = j + 1
            depth += (text in "([{") - (text in ")]}") if self.tokens[j].kind == "operator" else 0
        return spans

    def swapped(self, i):
        if self.tokens[i].text in KEYWORDS[self.language] or i + 1 not in self.close:
            return
        behind = self.close[i + 1] + 1
        if self.language == "c" and (self.text[self.tokens[i].start - 1:self.tokens[i].start] in ("\n", "") or
                                     behind < len(self.tokens) and self.tokens[behind].text == "{"):
            return  # a definition
        if i and self.tokens[i - 1].text == "function":
            return
        if self.language == "c" and i and self.tokens[i - 1].kind == "name" and self.tokens[i - 1].text != "return":
            return  # a declaration
        spans = self.arguments(i + 1)
        if len(spans) < 2 or self.tokens[i].text in PAIRS:
            return
        one, two = (self.text[start:end] for start, end in spans[:2])
        if one != two:
            between = self.text[spans[0][1]:spans[1][0]]
            yield Mutant("arguments", spans[0][0], spans[1][1], two + between + one)

    def of_conditions(self):
        for i, token in enumerate(self.tokens):
            if token.text not in ("if", "elseif"):
                continue
            if self.language == "c" and self.tokens[i + 1].text == "(" and i + 1 in self.close:
                start, end = self.tokens[i + 1].end, self.tokens[self.close[i + 1]].start
                yield Mutant("condition", start, end, "!(%s)" % self.text[start:end])
            elif self.language == "lua":
                then = next((j for j in range(i, len(self.tokens)) if self.tokens[j].text == "then"), None)
                if then:
                    start, end = self.tokens[i + 1].start, self.tokens[then - 1].end
                    yield Mutant("condition", start, end, "not (%s)" % self.text[start:end])

    def of_statements(self):
        if self.language == "lua":
            yield from self.of_lines()
            return
        for i, token in enumerate(self.tokens[:-1]):
            if token.text not in (";", "{", "}", ")", "else", ":") or token.kind == "string":
                continue
            first = i + 1
            last = next((j for j in range(first, len(self.tokens)) if self.tokens[j].text in (";", "{", "}")), None)
            if last is None or self.tokens[last].text != ";" or last <= first + 1 and self.tokens[first].text != "return":
                continue
            head, second, start, end = self.tokens[first], self.tokens[first + 1], self.tokens[first].start, self.tokens[last].start
            if head.text == "return" and last > first + 1:
                value = self.text[second.start:end]
                yield Mutant("return", second.start, end, {"0": "1", "PP_OK": "PP_INVALID"}.get(value, "0"))
            elif head.kind == "name" and head.text not in KEYWORDS["c"] and second.text in (".", "->", "[", "=", "(", "+=", "-=", "*=", "++", "--"):
                if token.text not in (")", ":") or self.ends_condition(i):
                    yield Mutant("statement", start, end, "")

    def ends_condition(self, i):
        """Is the bracket at i the end of if (…), for (…) or while (…)?"""
        opening = next((j for j, close in self.close.items() if close == i), None)
        return opening is not None and opening > 0 and self.tokens[opening - 1].text in ("if", "for", "while")

    def of_lines(self):
        at, before = 0, ""
        for line in self.text.split("\n"):
            code = re.sub(r"\s*--.*$", "", line)
            whole = all(code.count(a) == code.count(b) for a, b in ("()", "[]", "{}")) and not re.search(r"(,|[-+*/(\[{=]|\band|\bor|\.\.)\s*$", code)
            whole = whole and not re.search(r"(,|[-+*/(\[{=]|\band|\bor|\bnot|\.\.|\breturn)\s*$", before)
            indent = len(line) - len(line.lstrip())
            if whole and re.match(r"\s*return\s+\S", code) and indent:
                start = at + code.index("return") + 7
                end = at + len(re.sub(r"\s+end\)?$", "", code))
                if self.text[start:end] not in ("nil", "end"):
                    yield Mutant("return", start, end, "nil")
            elif whole and indent and re.match(r"\s*[\w.]+(\[[^]]*\])?(\.\w+)*\s*=[^=]|\s*[\w.:]+\([^=]*\)$", code) and "function" not in code:
                yield Mutant("statement", at + indent, at + len(code), "")
            if code.strip():
                before = code
            at += len(line) + 1


def mutants_of(text, language):
    """All mutants of a source, in order of place."""
    return sorted(set(Source(text, language).mutants()), key=lambda m: (m.start, m.end, m.kind, m.replacement))
