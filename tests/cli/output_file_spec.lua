-- SPDX-License-Identifier: Apache-2.0
-- Files that the program writes (-o): whole or not at all, in the place that their name leads to.

local files = require "policy_files"

local source, program = os.getenv "PIPEPLAN_SOURCE", os.getenv "PIPEPLAN"

teardown(files.remove)

-- Runs a shell script in a directory of its own, where $P is the program and `write FILE` has it write a short text. → its standard output,
-- its standard error, its exit status, the directory.
local function shell(script)
  local place = files.directory {}
  local setup = string.format("cd '%s' && unset LD_PRELOAD && P='%s'; write() { \"$P\" simulate 1f1b --ranks 2 --microbatches 2 -o \"$@\"; }\n",
                              place, program)
  local path = files.write("script", setup .. script)
  local out, problem = os.tmpname(), os.tmpname()
  local _, _, status = os.execute(string.format("bash '%s' >'%s' 2>'%s' </dev/null", path, out, problem))
  local texts = {}
  for i, name in ipairs { out, problem } do
    local handle = assert(io.open(name, "rb"))
    texts[i] = handle:read "a"
    handle:close()
    os.remove(name)
  end
  return texts[1], texts[2], status, place
end

local expected = shell [["$P" simulate 1f1b --ranks 2 --microbatches 2]]

local function read(path)
  local handle = io.open(path, "rb")
  if not handle then return nil end
  local text = handle:read "a"
  handle:close()
  return text
end

-- `as COMMAND` runs it as somebody who is not root, for root may do everything; the place is theirs.
local somebody = [[
  as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; else "$@"; fi; }
  [ "$(id -u)" != 0 ] || chown 65534:65534 .
  write() { as "$P" simulate 1f1b --ranks 2 --microbatches 2 -o "$@"; }
]]
local is_root = shell "id -u" == "0\n"
local nobody_can_run = select(3, shell(somebody .. [[as test -x "$P" && as test -w .]])) == 0

local function needs(condition, what)
  if not condition then pending(what) end
  return condition
end

describe("a file that is written", function()
  it("is what standard output would be, and nothing is printed", function()
    local out, problem, status, place = shell "write new"
    assert.same({ "", "", 0 }, { out, problem, status })
    assert.equal(expected, read(place .. "/new"))
  end)

  local run_and_plan = 'cp "$E"/monitor/healthy.log x; "$P" plan "$E"/specs/deepseek-v3.json --format json >y'

  -- What a command read, under whichever of its names, by way of whichever option or field: { set-up, arguments, file }.
  local read_by = {
    { 'cp "$E"/schedules/*.csv x.csv', "simulate ./x.csv", "x.csv" },
    { 'cp "$E"/times/uneven-stages.json x', "simulate 1f1b --ranks 4 --microbatches 8 --times x", "x" },
    { 'cp "$E"/profiles/4xH200.json x', "simulate 1f1b --ranks 4 --microbatches 8 --profile x", "x" },
    { 'cp "$E"/launch/llama3_70b.sh x.sh', "lint x.sh", "x.sh" },
    { 'cp "$E"/launch/llama3_70b.sh x.sh; "$P" plan "$E"/specs/deepseek-v3.json --format json >x', "lint x.sh --plan x", "x" },
    { run_and_plan, "monitor y x", "x" }, { run_and_plan, "monitor y x", "y" }, { run_and_plan, "monitor y - <x", "x" },
    { 'echo "warn { id = \'w\', message = \'w\', gpus = 1 }" >x.lua', "policy check --policy x.lua", "x.lua" },
    { 'mkdir d; echo "return 8" >d/own.lua; echo "warn { id = \'w\', message = \'w\', gpus = require(\'own\') }" >d/a.lua',
      "policy eval too_deep \"$E\"/specs/deepseek-v3.json --policy d", "d/own.lua" },
    { 'echo "warn { id = \'w\', message = \'w\', gpus = 1 }" >x.lua', "policy diff \"$E\"/specs/deepseek-v3.json --new x.lua", "x.lua" },
    { 'cp "$E"/sites/*.lua .', "policy test aws-p5_spec.lua", "aws-p5_spec.lua" },
    { 'cp "$E"/models/tiny.json m.json; echo "{ \\"model\\": \\"m.json\\" }" >s.json',
      "plan s.json --gpus 4 --accelerator H100 --tokens 1T", "m.json" },
    { 'cp "$E"/models/tiny.json m.json; echo "{ \\"model\\": \\"m.json\\" }" >s.json',
      "plan - --gpus 4 --accelerator H100 --tokens 1T <s.json", "s.json" },
    { 'cp "$E"/models/tiny.json m.json; echo "{}" >s.json', "plan s.json --model m.json --gpus 4 --accelerator H100 --tokens 1T", "m.json" },
    { 'echo "{}" >x.jsonl', "plan --jsonl <x.jsonl", "x.jsonl" },
  }
  for _, case in ipairs(read_by) do
    local setup, arguments, file = table.unpack(case)
    for _, name in ipairs(file == "x.csv" and { file, "link", "hard" } or { file }) do
      it(("is none that is read: %s -o %s"):format(arguments, name), function()
        local out, problem, status, place = shell(('E=\'%s/examples\'\n%s\nln -s %s link; ln %s hard; cp %s before\n"$P" %s -o %s')
                                                    :format(source, setup, file, file, file, arguments, name))
        assert.same({ "", 2 }, { out, status }, problem)
        assert.matches("--output is " .. name .. ", which is read: expected another file", problem, 1, true)
        assert.equal(read(place .. "/before"), read(place .. "/" .. file))
      end)
    end
  end

  -- The lines of a stream are planned in processes of their own.
  for _, options in ipairs { "--output m.json", "--record m.json", "--output m.json --resume m.json" } do
    it("is none that a line of a stream names: " .. options, function()
      local _, problem, status, place = shell(([[
        cp '%s'/examples/models/tiny.json m.json; cp m.json before; ln m.json n.json
        rest='"cluster": { "gpus": 4, "accelerator": "H100" }, "training": { "tokens": "1T" }'
        for model in '{}' '"n.json"' '"gone.json"'; do echo "{ \"model\": $model, $rest }"; done | "$P" plan --jsonl %s]]):format(source, options))
      assert.equal(2, status)
      local option = options:match "^%S+"
      if not options:find "resume" then
        assert.matches("\npipeplan: line 2: " .. option .. " is m.json, which is read: expected another file\n", problem, 1, true)
      end
      if option == "--output" then assert.equal(read(place .. "/before"), read(place .. "/m.json")) end
    end)
  end

  it("is held against all that is read, for one place opens it, beside the output that --resume goes on with", function()
    local out = shell(("cd '%s' && grep -rlE 'io[.](open|lines)' stdlib | sort"):format(source))
    assert.equal("stdlib/base/reading.lua\nstdlib/cli/resume.lua\n", out)
  end)

  it("leaves nothing beside it", function()
    assert.equal("f\nnew\n", (shell "echo old >f; write f; write new; ls -A"))
  end)

  it("keeps its mode, and takes a new one from the umask", function()
    assert.equal("640 600 755 666", (shell [[
      umask 027
      write new
      for mode in 600 755 666; do echo old >f$mode; chmod $mode f$mode; write f$mode; done
      stat -c %a new f600 f755 f666 | xargs echo -n]]))
  end)

  it("keeps its owner and group where this user may give files away", function()
    if not needs(is_root, "only root gives files away") then return end
    assert.equal("65534 65533\n", (shell "echo old >f; chown 65534:65533 f; write f; stat -c '%u %g' f"))
  end)

  it("opens to another group no more than to everybody, where its group cannot be kept", function()
    if not needs(is_root and nobody_can_run, "needs two users") then return end
    assert.equal("65534 600\n65534 644\n", (shell(somebody .. [[
      for mode in 660 664; do echo old >f; chown 65534:0 f; chmod $mode f; write f; stat -c '%g %a' f; rm f; done]])))
  end)

  it("is where its symbolic links lead, and they stay", function()
    local out = shell [[
      mkdir there; echo old >there/f
      ln -s there/f relative; ln -s "$PWD/relative" absolute; ln -s there/new dangling
      write absolute; write dangling
      readlink relative absolute dangling | sed "s,$PWD,.,"; ls -A there; cat there/f there/new]]
    assert.equal("there/f\n./relative\nthere/new\nf\nnew\n" .. expected .. expected, out)
  end)

  it("may have a name as long as names can be", function()
    assert.equal("255 " .. #expected .. "\n", (shell [[name=$(printf 'x%.0s' {1..255}); write $name; echo ${#name} $(wc -c <$name)]]))
  end)
end)

describe("what is no regular file", function()
  it("is written where it is: a FIFO, a device", function()
    assert.equal(expected .. "fifo\ncharacter special file\n", (shell [[
      mkfifo p; cat p & write p; wait; write /dev/null; stat -c %F p /dev/null]]))
  end)

  it("is written as it was opened: /dev/stdout, /dev/fd/N, -", function()
    for _, name in ipairs { "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-" } do
      local out, problem, status, place = shell("echo before >f; write " .. name .. " >>f; ls -A")
      assert.same({ "f\n", "", 0 }, { out, problem, status }, name)
      assert.equal("before\n" .. expected, read(place .. "/f"))
    end
    local _, _, _, place = shell "echo before >f; write /dev/fd/7 7>>f"
    assert.equal("before\n" .. expected, read(place .. "/f"))
  end)
end)

describe("a file that cannot be written", function()
  -- What strerror(3) says, as the GNU C library has it.
  it("is said with the reason: exit 2, and nothing on standard output", function()
    local cases = {
      { "mkdir d; write d", "cannot write d: Is a directory" },
      { "mkdir d; write d/", "cannot write d/: Is a directory" },
      { "write no/where", "cannot write no/where: No such file or directory" },
      { "echo >f; write f/x", "cannot write f/x: Not a directory" },
      { "write ''", "cannot write '': No such file or directory" },
      { "write $(printf 'x%.0s' {1..256})", "cannot write " .. ("x"):rep(256) .. ": File name too long" },
      { "ln -s no/where l; write l", "cannot write l: No such file or directory" },
      { "ln -s b a; ln -s a b; write a", "cannot write a: Too many levels of symbolic links" },
      { "write /dev/full", "cannot write /dev/full: No space left on device" },
      { "write - >/dev/full", "cannot write to standard output: No space left on device" },
      { "write /dev/fd/9", "cannot write /dev/fd/9: Bad file descriptor" },
      { "write - >&-", "cannot write to standard output: Bad file descriptor" },
    }
    for _, case in ipairs(cases) do
      local out, problem, status = shell(case[1])
      assert.same({ "", "pipeplan: " .. case[2] .. "\n", 2 }, { out, problem, status }, case[1])
    end
  end)

  it("keeps what was in it, and leaves nothing beside it", function()
    local out, problem = shell [[
      echo old >f
      (ulimit -f 1; "$P" simulate zb_h1 --ranks 8 --microbatches 60 --format trace -o f; echo $?)
      ls -A; cat f]]
    assert.equal("2\nf\nold\n", out)
    assert.equal("pipeplan: cannot write f: File too large\n", problem)
  end)

  it("is not replaced when this user may not write it, or not in its folder", function()
    if not needs(nobody_can_run, "a user who is not root cannot run this build") then return end
    local out, problem = shell(somebody .. [[
      echo old >f; chmod 444 f; write f; echo $?
      mkdir d; echo old >d/f; chmod 666 d/f; chmod 555 d; write d/f; echo $?; write d/new; echo $?
      cat f d/f; ls -A d; chmod 755 d]])
    assert.equal("2\n2\n2\nold\nold\nf\n", out)
    assert.equal("pipeplan: cannot write f: Permission denied\n"
                 .. "pipeplan: cannot write d/f: Permission denied, in its folder, where the new file is made before it replaces the old one\n"
                 .. "pipeplan: cannot write d/new: Permission denied\n", problem)
  end)
end)

describe("two writers of one file", function()
  it("leave one whole file of either", function()
    local out, problem = shell [[
      for size in 200 30; do "$P" simulate zb_h1 --ranks 8 --microbatches $size --format trace -o whole$size; done
      for round in 1 2 3 4 5; do
        for size in 200 30; do "$P" simulate zb_h1 --ranks 8 --microbatches $size --format trace -o f || echo failed & done
        wait
        cmp -s f whole200 || cmp -s f whole30 || echo torn
      done
      ls -A]]
    assert.same({ "f\nwhole200\nwhole30\n", "" }, { out, problem })
  end)
end)

describe("every command with -o", function()
  local commands = {
    "plan examples/specs/llama-3.1-405b.json --date 2026-12-01",
    "simulate 1f1b --ranks 2 --microbatches 2",
    "monitor $D/plan.json examples/monitor/healthy.log",
    "policy check --policy examples/sites/aws-p5.lua --date 2026-12-01 --format sarif --no-witnesses",
    "policy diff default examples/sites/aws-p5.lua --date 2026-12-01 --corpus $D/corpus",
    "policy test examples/sites/hall-7_spec.lua --format tap",
    "policy mutate --policy examples/sites/hall-7.lua --date 2026-12-01 examples/sites/hall-7_spec.lua --filter deep_on_ethernet --no-witnesses",
  }

  it("writes what it would print, whole or not at all", function()
    for _, command in ipairs(commands) do
      local out, problem = shell(string.format([[
        D=$PWD; cd '%s'; tr -d '\n' <tests/policy/dense.json >$D/corpus; "$P" plan examples/specs/deepseek-v3.json --format json -o $D/plan.json
        "$P" %s >$D/printed; status=$?
        echo old >$D/f; chmod 640 $D/f; "$P" %s -o $D/f; [ $? = $status ] && cmp $D/f $D/printed && [ -s $D/f ] && stat -c %%a $D/f
        "$P" %s -o /dev/full; echo $?]], source, command, command, command))
      assert.same({ "640\n2\n", "pipeplan: cannot write /dev/full: No space left on device\n" }, { out, problem }, command)
    end
  end)

  it("and policy init, which makes both of its files or none", function()
    local long = ("x"):rep(247)  -- site.lua is a name, site_spec.lua is too long for one
    local out, problem = shell('mkdir d; "$P" policy init site --directory d; echo $?; "$P" policy init ' .. long .. " --directory d; echo $?; ls d")
    assert.matches("^d/site.lua\nd/site_spec.lua\n.*\n0\n2\nsite.lua\nsite_spec.lua\n$", out)
    assert.equal("pipeplan: cannot write d/" .. long .. "_spec.lua: File name too long\n", problem)
  end)
end)
