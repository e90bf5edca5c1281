-- SPDX-License-Identifier: Apache-2.0
-- lint_shell_spec.lua: what of a shell script reaches the program that it starts, by what bash itself passes on, where it is installed.

require "pipeplan"
local arithmetic = require "pipeplan.input.launch.shell_arithmetic"
local script = require "pipeplan.input.launch.shell_script"

-- The words of each command, those that are not known behind a ?, what rests on something behind a ~.
local function commands(text, variables)
  local out = {}
  script.run(text, "case.sh", variables, function(words)
    local list = {}
    for i, word in ipairs(words) do list[i] = word.text .. (word.unknown and "?" or "") .. (word.rests and "~" or "") end
    out[#out + 1] = table.concat(list, "|")
  end)
  return out
end

-- Those of p.
local function one(text, variables)
  for _, command in ipairs(commands(text, variables)) do
    if command:find "^p%f[^%w]" then return command end
  end
end

-- What bash passes on: each script calls p once, which prints its arguments.
local known = {
  { "variables, bare and in braces", "A=1 B=x\np $A ${B}y \"$A $B\" '$A'\n" },
  { "defaults", "A=${A:-8}\nB=${A:+set}\nC=${NOT-none}\np $A $B $C \"${D:=4}\" $D\n" },
  { "arrays over lines with comments", "A=(\n  --a 1 # one\n  --b \"2 3\"\n)\nA+=( --c )\np \"${A[@]}\" ${A[1]} ${A[@]}\n" },
  { "text that falls into words", "O=\" \\\n  --a 1 \\\n  --b 2 \"\np $O \"$O\"\n" },
  { "arithmetic", "N=4 G=8\nW=$(($G*$N))\np $W $((W/3)) $(( (N+1)*2 - 1 )) $[N*2] $((N>3))\n" },
  { "continued lines, and a quote inside a word", "p --a\\\n=1 --b=\"x\"y \\\n  --c\n" },
  { "branches whose condition is known", "A=b\nif [ \"$A\" = a ]; then X=1; elif [[ $A == b && -n $A ]]; then X=2; else X=3; fi\np $X\n" },
  { "case", "M=7b\ncase $M in\n  1b|2b) X=1 ;;\n  7*) X=7 ;;\n  *) X=0 ;;\nesac\np $X\n" },
  { "a list of conditions", "A=1\n[ $A -eq 1 ] && X=yes\n[ $A -gt 1 ] || Y=no\np $X $Y\n" },
  { "a loop over one word, and a group", "for x in 5; do { p $x; }; done\n" },
  { "eval and bash -c", "C='p 1 2'\neval $C\n" },
  { "associative arrays", "declare -A M=( [a]=1 [\"b\"]=2 )\nM[c]=3\nk=b\np ${M[a]} ${M[$k]} ${M[c]}\n" },
  { "a backslash that ends the file", "p a b\\" },
  { "and one behind a blank", "p a \\" },
  { "comments, and # inside words", "# p 0\np a#b # c\n" },
  { "and before or, in tests of both kinds", "A=1 B=2\n[[ $A == 2 && $B == 3 || $B == 2 ]] && X=1\n[ $A = 2 -a $B = 3 -o $B = 2 ] && Y=1\n"
    .. "[[ $B == 2 || $A == 2 && $A == 3 ]] && Z=1\n[[ ! $A == 1 || $B == 3 ]] || W=1\np $X $Y $Z $W\n" },
  { "patterns of several stars", "for t in abcabd; do\ncase $t in *a?e) X=1 ;; a*b*c*d) X=2 ;; esac\n"
    .. "case $t in ?) Y=1 ;; *ab*ab) Y=2 ;; **a**) Y=3 ;; esac\ncase $t in *bd*) Z=1 ;; esac\ndone\np $X $Y $Z\n" },
  { "powers", "p $((3**39)) $((2**10)) $((7**0)) $((-2**3))\n" },
  { "what grows behind a copy of it", "A=x\nB=$A\nA+=y\nC=${D:=1}\nD+=2\nE=(1)\nF=(\"${E[@]}\")\nE+=(2 3)\np $A $B $C $D \"${E[@]}\" \"${F[@]}\"\n" },
  { "an empty variable is no word, an empty quoted one is", "E=\np $E \"$E\" x\n" },
}

describe("a script whose words are all known", function()
  local bash = os.execute "bash --version >/dev/null 2>&1"
  for _, case in ipairs(known) do
    it("passes them on as bash does: " .. case[1], function()
      if not bash then return pending "no bash here to ask" end
      local name = os.tmpname()
      local handle = assert(io.open(name, "wb"))
      handle:write("p() { local IFS='|'; printf '%s' \"p|$*\"; exit; }\n" .. case[2])
      handle:close()
      local pipe = assert(io.popen("env -i bash " .. name))
      local expected = pipe:read "a"
      pipe:close()
      os.remove(name)
      assert.equal(expected, (one(case[2]):gsub("~", "")))
    end)
  end
end)

describe("what a script does not know", function()
  it("is said where it is used: arguments, the environment, commands, lengths", function()
    assert.equal("p|$1?|x${HOME}?|$(date)?|${A%b}?|$((N*2))?", one "A=ab\np $1 x${HOME} $(date) ${A%b} $((N*2))\n")
  end)

  -- POSIX.1-2024, Shell Command Language, 2.5.2: "$@" is a field for each argument, and none where there are none; so are bash's arrays
  it("is any number of words of $@ and of an array, in quotes too, and of a variable outside of them", function()
    local open = {}
    script.run('A=(a "$@")\np "$@" "${@}" "${B[@]}" $C "$C" x"$@" "" "${A[@]}"\n', "case.sh", nil, function(words)
      for i, word in ipairs(words) do open[i] = word.text .. (word.open and "…" or "") end
    end)
    assert.same({ "p", "$@…", "${@}…", "${B[@]}…", "$C…", "$C", "x$@", "", "a", "$@…" }, open)
  end)

  it("is never executed", function()
    local name = os.tmpname()
    os.remove(name)
    commands(string.format("X=$(touch %s)\nY=`touch %s`\ntouch %s\n$(touch %s) z\n", name, name, name, name))
    assert.is_nil(io.open(name))
  end)

  it("is what a default stands for, until somebody says it", function()
    assert.equal("p|8~", one "p ${N:-8}\n")
    assert.equal("p|16", one("p ${N:-8}\n", { N = "16" }))
    assert.equal("p|8~", one "p ${N:-\"8\"}\n")       -- a quoted word: dash and bash print 8
    assert.equal("p|$M~", one "p ${N:-'$M'}\n")
    assert.equal("p|4~", one "N=${NODES:-2}\np $((N*2))\n")
    assert.equal("p|1~", one "if [ -z \"$N\" ]; then N=1; fi\np $N\n")
  end)

  it("makes what stands in a branch rest on its condition", function()
    assert.equal("p|1~", one "if grep -q x /proc/cpuinfo; then X=1; fi\nif [ -f /etc/x ]; then Y=1; fi\np $Y\n")
    assert.equal("p|8~", one "if [ \"$BIG\" = yes ]; then X=16; else X=8; fi\np $X\n")
    assert.equal("p|4~", one "X=4\nif [ \"$BIG\" = yes ]; then X=16; fi\np $X\n")
    assert.equal("p|4~|2", one "X=4\nY=2\n[ \"$BIG\" = yes ] && X=16\np $X $Y\n")
    assert.equal("p|4", one "BIG=no\nX=4\nif [ $BIG = yes ]; then X=16; fi\np $X\n")
  end)

  it("turns a condition round behind a !", function()
    assert.equal("p|4~", one "if ! [[ \"$BIG\" == yes ]]; then X=4; else X=8; fi\np $X\n")
    assert.equal("p|2", one "N=1\nif ! [ $N = 1 ]; then X=1; else X=2; fi\np $X\n")
    assert.equal("p|3", one "! false && X=3\np $X\n")
  end)

  it("keeps a function's own arrays", function()
    assert.equal("p|a|b c|d", one "f() {\n  local F=(a \"b c\"\n    d)\n  p \"${F[@]}\"\n}\nf\n")
  end)

  it("are the script's own arguments, where a condition asks: then there are none", function()
    assert.equal("p|4", one "X=4\nwhile [ $# -gt 0 ]; do case $1 in --x) X=$2 ;; esac; shift; done\np $X\n")
  end)
end)

describe("a script that nobody could read", function()
  local function problem(text)
    local good, told = pcall(commands, text)
    assert.is_false(good)
    return tostring(told)
  end

  it("ends with its line", function()
    assert.equal("case.sh:2: a quote ' is never closed", problem "p 1\np 'x\n\n")
    assert.equal("case.sh:1: a quote \" is never closed", problem "p \"x\n\n")
    assert.equal("case.sh:1: the array A=( is never closed", problem "A=( 1 2\n")
    assert.equal("case.sh:1: $( is never closed", problem "p $(x\n")
    assert.equal("case.sh:1: if is never closed: expected elif or else or fi", problem "if true; then p\n")
  end)

  it("does not grow without end", function()
    assert.truthy(problem("A=xxxxxxxxxx\n" .. ("A=$A$A\n"):rep(60)):find "^case.sh:%d+: the script expands to more than 4 MiB")
    assert.truthy(problem("E='eval \"$E\"'\neval \"$E\"\n"):find "more than 24 deep")
    assert.truthy(problem(("if true; then\n"):rep(1000)):find "nested more than 48 deep")
  end)
end)

it("arithmetic is that of a shell", function()
  local function value(text) return arithmetic.value(text, function(name) return name == "N" and 6 or nil end) end
  assert.same({ 14, -2, 1, 1, 8, 24 }, { value "2+3*4", value "-7/3", value "7%3", value "N>=6&&N!=7", value "2**3", value "N<<2" })
  assert.is_nil(value "1/0")
  assert.is_nil(value "M+1")
  assert.is_nil(value "1 2")
  assert.is_nil(value(("("):rep(1000) .. "1" .. (")"):rep(1000)))
end)
