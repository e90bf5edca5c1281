-- SPDX-License-Identifier: Apache-2.0
-- plan --jsonl as what it is, a stream: who reads and writes at its ends may wait for each other, and anybody may be killed.

local files = require "policy_files"
local program = require "program"

local cjson = require "cjson"

local sanitized = os.getenv "PIPEPLAN_PRELOAD" ~= nil

teardown(files.remove)

local function spec(gpus, more)
  local object = { cluster = { gpus = gpus, accelerator = "H100-SXM" },
                   training = { tokens = "1T", micro_batch_size = 1, recompute = "selective", sharding = "optimizer" },
                   model = { architecture = "dense", total = "70B", layers = 80 }, parallelism = { tensor = 8, context = 1 } }
  for name, value in pairs(more or {}) do object[name] = value end
  return cjson.encode(object)
end

local date = "--date 2026-12-01 "

local function run(arguments, input) return program.run("plan --jsonl " .. date .. arguments, input) end

local function lines_of(text)
  local list = {}
  for line in text:gmatch "([^\n]*)\n" do list[#list + 1] = line end
  return list
end

local function read(path)
  local handle = io.open(path, "rb")
  if not handle then return nil end
  local text = handle:read "a"
  handle:close()
  return text
end

-- Runs a shell script in a directory with these files, where $P is the program. → its standard output, its standard error, its exit status, the
-- directory.
local function shell(script, texts)
  local place = files.directory(texts)
  files.write("script", "unset LD_PRELOAD; P='" .. os.getenv "PIPEPLAN" .. "'\n" .. script, place)
  local _, _, status = os.execute(string.format("cd '%s' && sh ./script >stdout 2>stderr </dev/null", place))
  return read(place .. "/stdout"), read(place .. "/stderr"), status, place
end

-- A policy under which 16 GPUs are thought about until the budget is spent, in what takes long for its units, and 24 fail.
local thinking = files.write("thinking.lua", [[
site "thinking"
refuse { id = "endless", when = function(f) if f.gpus == 16 then while true do local _ = f.gpus end end return false end, message = "never" }
refuse { id = "failing", when = function(f) if f.gpus == 24 then error "failing" end return false end, message = "never" }
]])

-- ------------------------------------------------------------------------------------------------------ a stream with open ends

local stream = {}
stream.__index = stream

-- Starts one: `to` is its standard input, `from` its standard output. (A shell has its background jobs ignore SIGINT, nohup SIGHUP.)
local function start(arguments)
  local place = files.directory {}
  local self = setmetatable({ place = place }, stream)
  local script = string.format([[
    cd '%s'; unset LD_PRELOAD; mkfifo in out pid ended
    { sh -c 'exec 2>err; echo $$ >pid; cd "%s"; exec env --default-signal=INT,HUP "%s" plan --jsonl %s %s' <in >out 2>/dev/null
      echo $? >ended; } >/dev/null 2>/dev/null &]], place, os.getenv "PIPEPLAN_SOURCE", os.getenv "PIPEPLAN", date, (arguments or ""):gsub("PLACE", place))
  assert(os.execute("sh '" .. files.write("script", script) .. "'"))
  self.to = assert(io.open(place .. "/in", "wb"))
  self.from = assert(io.open(place .. "/out", "rb"))
  self.to:setvbuf "no"
  self.pid = assert(math.tointeger(tonumber(read(place .. "/pid"))))
  return self
end

function stream:write(line) assert(self.to:write(line, "\n")) end

function stream:read() return cjson.decode((assert(self.from:read "l", "the stream ended"))) end

-- What a process is doing, and its parent: R running, S sleeping, …; nil: there is none, or it has ended and is not waited for.
local function state_of(pid)
  local state, parent = (read("/proc/" .. pid .. "/stat") or ""):match "%) (%a) (%d+)"
  if state ~= "Z" then return state, math.tointeger(parent) end
end

function stream:workers()
  local list = {}
  for pid in (read(string.format("/proc/%d/task/%d/children", self.pid, self.pid)) or ""):gmatch "%d+" do
    list[#list + 1] = state_of(pid) and math.tointeger(pid)
  end
  return list
end

-- Ticks of a processor, mostly 10 ms, that a process has had; 0: it is gone.
local function ticks_of(pid)
  local user, system = (read("/proc/" .. pid .. "/stat") or ""):match("%) %a" .. (" %-?%d+"):rep(10) .. " (%d+) (%d+)")
  return user and user + system or 0
end

-- The only worker that runs, once it is at it: it thinks for most of a second, longer than it takes to clean up after an answer.
function stream:working()
  local patience, at_first = os.time() + 60, {}
  while os.time() < patience do
    for _, pid in ipairs(self:workers()) do
      at_first[pid] = at_first[pid] or ticks_of(pid)
      if state_of(pid) == "R" and ticks_of(pid) >= at_first[pid] + 10 then return pid end
    end
  end
  error "no worker was seen at work"
end

local function kill(signal, pid) assert(os.execute(string.format("kill -%s %d", signal, pid))) end

-- What it left on standard output, on standard error, its exit status and those of its workers that still are.
function stream:finish(keep_reading)
  if io.type(self.to) == "file" then self.to:close() end
  local rest = keep_reading ~= false and self.from:read "a"
  if io.type(self.from) == "file" then self.from:close() end
  local status = math.tointeger(tonumber(read(self.place .. "/ended")))
  return rest, read(self.place .. "/err"), status
end

local function assert_gone(pids)
  assert.is_true(#pids > 0)
  for _, pid in ipairs(pids) do
    while state_of(pid) do os.execute "sleep 0.01" end  -- it has been sent SIGKILL: it ends when it is next scheduled
  end
end

describe("a stream of specs", function()
  it("answers each line before it is given the next", function()
    for _, jobs in ipairs { 1, 3 } do
      local one = start("--jobs " .. jobs)
      for gpus = 64, 320, 64 do
        one:write(spec(gpus))
        assert.equal(gpus, one:read().cluster.gpus)
      end
      assert.same({ "", "", 0 }, { one:finish() })
    end
  end)

  it("takes a line as it comes, in parts", function()
    local one, text = start(), spec(64)
    one.to:write(text:sub(1, 10))
    one.to:write(text:sub(11, 50))
    one.to:write(text:sub(51), "\n\n", spec(128))
    assert.equal(64, one:read().cluster.gpus)
    one.to:close()  -- the last line has no line end
    assert.equal(128, one:read().cluster.gpus)
    assert.same({ "", "", 0 }, { one:finish() })
  end)

  it("loses one line with a worker that is killed, and nothing else", function()
    for _, jobs in ipairs { 1, 2 } do
      local one = start("--policy " .. thinking .. " --jobs " .. jobs)
      one:write(spec(64))
      assert.equal(64, one:read().cluster.gpus)
      one:write(spec(16))
      kill("KILL", one:working())
      for gpus = 64, 256, 64 do one:write(spec(gpus)) end
      assert.same({ line = 2, message = "the process that planned it was ended by signal 9 (Killed): by hand, or for want of memory", status = 4 },
                  one:read().error)
      for gpus = 64, 256, 64 do assert.equal(gpus, one:read().cluster.gpus) end
      assert.same({ "", "pipeplan: line 2: the process that planned it was ended by signal 9 (Killed): by hand, or for want of memory\n", 4 },
                  { one:finish() })
    end
  end)

  it("goes on however often that happens", function()
    local one = start("--policy " .. thinking)
    local messages = { ABRT = "ended by signal 6", XCPU = "over budget: the process that planned it ran out of processor time" }
    for number, signal in ipairs { "ABRT", "XCPU", "ABRT" } do
      one:write(spec(16))
      kill(signal, one:working())
      local problem = one:read().error
      assert.same({ number, signal == "XCPU" and 4 or 70 }, { problem.line, problem.status })
      assert.matches(messages[signal], problem.message, 1, true)
    end
    one:write(spec(64))
    assert.equal(64, one:read().cluster.gpus)
    assert.equal(70, select(3, one:finish()))
  end)

  -- Here it is the Lua of --stdlib that prints and ends it; of a real one, a C library or a sanitizer.
  it("tells the last words of a worker that dies, on one line and no longer than 1000 bytes, and what one printed that lives", function()
    local stdlib = files.directory {}
    assert(os.execute(string.format("cp -r '%s/stdlib/.' %s", os.getenv "PIPEPLAN_SOURCE", stdlib)))
    local text = read(stdlib .. "/plan/init.lua")
    files.write("init.lua", (text:gsub("return (%w+)%s*$", [[
local make = %1.plan
function %1.plan(how)
  local gpus = how.request.cluster.gpus
  if gpus == 24 then io.stderr:write("heap \27[31m corrupt\nabort\n") os.execute "kill -ABRT $PPID" os.execute "sleep 10" end
  if gpus == 32 then print(("€"):rep(5000) .. "end") os.exit(3) end
  if gpus == 40 then print "a warning" end
  return make(how)
end
return %1
]])), stdlib .. "/plan")
    local lines = {}
    for _, gpus in ipairs { 16, 24, 32, 40 } do lines[#lines + 1] = spec(gpus) end
    local result = run("--stdlib " .. stdlib, table.concat(lines, "\n") .. "\n")
    local answers = {}
    for line in result.stdout:gmatch "[^\n]+" do answers[#answers + 1] = cjson.decode(line) end
    assert.equal(70, result.status)
    assert.is_nil(answers[1].error)
    assert.is_nil(answers[4].error)
    assert.equal([[the process that planned it was ended by signal 6 (Aborted); its last words: heap \x1b[31m corrupt\nabort]], answers[2].error.message)
    local words = answers[3].error.message:match "^the process that planned it ended with exit status 3; its last words: (.*)$"
    assert.equal("end", (words:gsub("€", "")))
    assert.is_true(#words <= 1000 and #words > 990)
    assert.matches("pipeplan: line 4: the process that planned it printed: a warning\n", result.stderr, 1, true)
    assert.equal(3, select(2, result.stderr:gsub("\n", "")))
  end)

  it("does not mind that an idle worker is killed", function()
    local one = start "--jobs 2"
    one:write(spec(64))
    one:read()
    local pids = one:workers()
    for _, pid in ipairs(pids) do kill("KILL", pid) end
    assert_gone(pids)
    one:write(spec(128))
    assert.equal(128, one:read().cluster.gpus)
    assert.same({ "", "", 0 }, { one:finish() })
  end)

  it("gives a line the same answer whatever stood before it", function()
    local input = {}
    for _, gpus in ipairs { 64, 16, 64, 24, 64, 64 } do input[#input + 1] = spec(gpus) .. "\n" end
    for _, jobs in ipairs { 1, 2 } do
      local result = run("--policy " .. thinking .. " --jobs " .. jobs, table.concat(input))
      local answers = lines_of(result.stdout)
      assert.equal(6, #answers)
      assert.equal(4, cjson.decode(answers[2]).error.status)
      assert.equal(3, cjson.decode(answers[4]).error.status)
      for _, i in ipairs { 3, 5, 6 } do assert.is_true(answers[1] == answers[i]) end
      assert.equal(3, result.status)
    end
  end)

  for signal, status in pairs { TERM = 143, INT = 130, HUP = 129 } do
    it("ends with its workers and its temporary file on SIG" .. signal, function()
      local one = start("--policy " .. thinking .. " --jobs 3 -o PLACE/file")
      for _ = 1, 3 do one:write(spec(16)) end
      one:working()
      local pids = one:workers()
      local function there() return os.execute("ls '" .. one.place .. "'/.pipeplan-* >/dev/null 2>&1") == true end
      assert.is_true(there())
      kill(signal, one.pid)
      assert.same({ "", "", status }, { one:finish() })
      assert_gone(pids)
      assert.is_false(there())
      assert.is_nil(read(one.place .. "/file"))
    end)
  end

  it("has workers that end when it is killed itself", function()
    local one = start("--policy " .. thinking .. " --jobs 2")
    for _ = 1, 2 do one:write(spec(16)) end
    one:working()
    local pids = one:workers()
    kill("KILL", one.pid)
    assert.equal(137, select(3, one:finish()))
    assert_gone(pids)
  end)

  it("ends with its workers, quietly, when nobody reads it any more, though it has nothing to write", function()
    local one = start("--policy " .. thinking .. " --jobs 2")
    one:write(spec(64))
    one:read()
    one:write(spec(16))
    one:working()
    local pids = one:workers()
    one.from:close()
    assert.equal(141, math.tointeger(tonumber(read(one.place .. "/ended"))))  -- 128 + SIGPIPE; its standard input is still open
    assert.equal("", read(one.place .. "/err"))
    assert_gone(pids)
    one.to:close()
  end)

  it("does so also for whoever started it with SIGPIPE ignored", function()
    local _, problem, _, place = shell([[trap '' PIPE
      { "$P" plan --jsonl --jobs 2 <specs.jsonl; echo $? >status; } | head -1 >/dev/null]], { ["specs.jsonl"] = (spec(64) .. "\n"):rep(50) })
    assert.same({ "141\n", "" }, { read(place .. "/status"), problem })
  end)
end)

describe("a line of a stream", function()
  local good = spec(64)
  local plan = run("", good .. "\n").stdout

  -- → the messages of its answers, "" for a plan
  local function answers(input)
    local out, result = {}, run("", input)
    for i, line in ipairs(lines_of(result.stdout)) do
      local problem = cjson.decode(line).error
      out[i] = problem and string.format("%d: %s", problem.line, problem.message) or line .. "\n" == plan and "" or "another plan"
    end
    return out, result
  end

  it("may end in CRLF, or not at all if it is the last; lines without a spec are counted and not answered", function()
    assert.same({ "", "", "" }, (answers(good .. "\r\n\r\n \t\n" .. good .. "\n\n" .. good)))
    local out, result = answers("\n{\n\r\n" .. good)
    assert.equal(2, #out)
    assert.matches("^2: ", out[1])
    assert.equal("", out[2])
    assert.equal(2, result.status)
  end)

  it("is at most 1 MiB; of a longer one nothing is kept", function()
    local most = good .. (" "):rep(2 ^ 20 - #good)
    assert.same({ "", "2: longer than 1 MiB: this is no spec", "" }, (answers(most .. "\n" .. most .. " \n" .. good .. "\n")))
    assert.same({ "", "2: longer than 1 MiB: this is no spec" }, (answers(good .. "\n" .. most .. " ")))
  end)

  it("with a NUL byte, broken UTF-8, a byte order mark or two specs is an error of its own", function()
    for _, bad in ipairs { "\0", good:gsub("dense", "de\0nse"), good:gsub("dense", "de\xffnse"), "\u{feff}" .. good, good .. good } do
      local out, result = answers(good .. "\n" .. bad .. "\n" .. good .. "\n")
      assert.equal(3, #out)
      assert.matches("^2: line 2:1:%d+: ", out[2])
      assert.same({ "", "", 2 }, { out[1], out[3], result.status })
    end
  end)

  it("is needed: without any it is exit 5, and a standard input that cannot be read exit 2", function()
    for _, input in ipairs { "", "\n", " \r\n\t\n" } do
      local result = run("", input)
      assert.same({ 5, "", "pipeplan: no spec on standard input\n" }, { result.status, result.stdout, result.stderr })
    end
    for redirection, why in pairs { ["</"] = "Is a directory", ["<&-"] = "Bad file descriptor" } do
      local out, problem = shell('"$P" plan --jsonl ' .. redirection .. "; echo $?", {})
      assert.same({ "2\n", "pipeplan: standard input cannot be read: " .. why .. "\n" }, { out, problem })
    end
  end)
end)

describe("the memory of a stream", function()
  it("does not grow with its lines", function()
    if sanitized then return pending "a sanitizer takes all addresses" end
    -- 500 MB, in 250 MB of addresses for each process
    assert.equal("1000\n", (shell([[ulimit -v 250000
      while cat line; do :; done 2>/dev/null | head -1000 | "$P" plan --jsonl --jobs 2 2>/dev/null | grep -c '"status":2']],
      { line = ("x"):rep(500000) .. "\n" })))
  end)
end)

describe("a stream without enough processes", function()
  local input = (spec(64) .. "\n"):rep(20)
  local expected = run("", input)

  it("does with fewer workers", function()
    local few = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 14\n"
    local out, problem, status = shell(few .. '"$P" plan --jsonl ' .. date .. "--jobs 40 <input", { input = input })
    assert.same({ "", 0 }, { problem, status })
    assert.is_true(out == expected.stdout)
  end)

  it("says of each line that none can be had, which is no bug of the program's: exit 4", function()
    -- a shell moves what it redirects behind 10, so that is done first
    local none = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- <input; ulimit -n 6\n"
    local out, problem, status = shell(none .. 'exec "$P" plan --jsonl ' .. date .. "--jobs 2", { input = input })
    assert.equal(4, status)
    assert.equal(20, select(2, out:gsub('"status":4', "")))
    assert.matches("line 20: no process to plan it: Too many open files", problem, 1, true)
  end)
end)

describe("a line of plan --jsonl", function()
  it("that is no object is told as a spec that is none", function()
    for _, text in ipairs { "[]", "null", "5" } do
      local told = ": holds " .. text .. ": expected an object with cluster, framework"
      assert.matches(told, run("", text .. "\n").stderr, 1, true)
      assert.matches(told, program.run("plan -", text).stderr, 1, true)
    end
  end)
end)

describe("--resume", function()
  local input = {}
  for i, gpus in ipairs { 64, 0, 128, 192, 256, 8, 320 } do input[i] = spec(gpus) .. (i % 2 == 0 and "\n" or "\n\n") end
  input = table.concat(input)
  local full = run("", input)
  local ends = { 0 }
  for at in full.stdout:gmatch "\n()" do ends[#ends + 1] = at - 1 end

  -- Cut after so many bytes. → what is whole of it, the path.
  local function cut(size)
    local whole = 0
    for _, at in ipairs(ends) do if at <= size then whole = at end end
    return full.stdout:sub(1, whole), files.write("out.jsonl", full.stdout:sub(1, size))
  end

  it("goes on after the whole lines of an output that was cut anywhere: the same bytes and status as in one run", function()
    for _, size in ipairs { 0, 1, ends[2] - 1, ends[2], ends[2] + 1, ends[4] - 1, ends[4], #full.stdout - 1, #full.stdout } do
      local whole, path = cut(size)
      local result = run("--jobs 2 --resume " .. path, input)
      assert.is_true(whole .. result.stdout == full.stdout, "cut at " .. size)
      assert.equal(full.status, result.status)
    end
  end)

  it("says nothing again of what was answered before", function()
    local _, path = cut(ends[4])
    assert.equal("", run("--resume " .. path, input).stderr)
    assert.matches("^pipeplan: line 3: [^\n]*\n$", full.stderr)
  end)

  it("with -o of the same file goes on in that file, which may be missing", function()
    for _, size in ipairs { 0, ends[3], ends[3] + 10, #full.stdout } do
      local _, path = cut(size)
      local result = run("-o " .. path .. " --resume " .. path, input)
      assert.same({ "", full.status }, { result.stdout, result.status })
      assert.is_true(read(path) == full.stdout)
    end
    local path = files.directory {} .. "/out.jsonl"
    assert.equal(full.status, run("-o " .. path .. " --resume " .. path, input).status)
    assert.is_true(read(path) == full.stdout)
  end)

  it("with -o of another file writes all of it there", function()
    local _, path = cut(ends[3] + 10)
    local before, other = read(path), files.directory {} .. "/other.jsonl"
    assert.equal(full.status, run("-o " .. other .. " --resume " .. path, input).status)
    assert.is_true(read(other) == full.stdout)
    assert.is_true(read(path) == before)
  end)

  it("leaves in the file what a stream that is killed had answered", function()
    local one = start "-o PLACE/file --resume PLACE/file --jobs 2"
    one:write(spec(64))
    one:write(spec(128))
    while #lines_of(read(one.place .. "/file") or "") < 2 do os.execute "sleep 0.01" end
    kill("KILL", one.pid)
    one:finish()
    local result = run(string.format("--resume %s/file", one.place), spec(64) .. "\n" .. spec(128) .. "\n" .. spec(192) .. "\n")
    assert.equal(192, cjson.decode(result.stdout).cluster.gpus)
  end)

  it("has one writer of a file", function()
    local one = start "-o PLACE/file --resume PLACE/file"
    one:write(spec(64))
    while #lines_of(read(one.place .. "/file") or "") < 1 do os.execute "sleep 0.01" end
    local result = run(string.format("-o %s/file --resume %s/file", one.place, one.place), spec(64) .. "\n")
    assert.same({ 2, string.format("pipeplan: cannot write %s/file: another process is writing it\n", one.place) }, { result.status, result.stderr })
    assert.equal(0, select(3, one:finish()))
  end)

  it("refuses to go on behind a torn line", function()
    local script = '"$P" plan --jsonl ' .. date .. "--resume out.jsonl <input >>out.jsonl"
    local texts = { input = input, ["out.jsonl"] = full.stdout:sub(1, ends[3] + 10) }
    local _, problem, status, place = shell(script, texts)
    assert.equal(2, status)
    assert.matches("its last line is torn, and standard output goes on behind it: say %-o", problem)
    assert.is_true(read(place .. "/out.jsonl") == texts["out.jsonl"])
    texts["out.jsonl"] = full.stdout:sub(1, ends[3])
    _, _, status, place = shell(script, texts)
    assert.equal(full.status, status)
    assert.is_true(read(place .. "/out.jsonl") == full.stdout)
  end)

  -- What is said of answers that are not this run's; `change`: of the answers of the first five lines.
  local function refused(change, arguments, specs)
    local _, path = cut(ends[6])
    local text = change and change(read(path)) or read(path)
    local result = run((arguments or "") .. " --resume " .. files.write("out.jsonl", text), specs or input)
    assert.same({ 2, "" }, { result.status, result.stdout })
    return result.stderr
  end

  it("takes answers of this version, policy and date only", function()
    assert.matches("out.jsonl:1: planned by pipeplan 0.0.1, and this is ",
                   refused(function(text) return text:gsub('("engine_version":)"[^"]*"', '%1"0.0.1"') end), 1, true)
    assert.matches("out.jsonl:1: planned at 2026-12-01, and not at 2026-12-02: say --date 2026-12-01", refused(nil, "--date 2026-12-02"), 1, true)
    assert.matches("out.jsonl:1: planned under another policy", refused(nil, "--policy examples/sites/aws-p5.lua"), 1, true)
  end)

  it("takes answers of these lines only", function()
    assert.matches("out.jsonl:1: is not what line 1 of standard input is planned as", refused(nil, nil, (input:gsub('"gpus":64', '"gpus":72'))), 1, true)
    assert.matches("out.jsonl:1: is not what line 1", refused(nil, "--explain"), 1, true)
    assert.matches("out.jsonl:5: is not what line 7", refused(nil, nil, (input:gsub('"gpus":256', '"gpus":264'))), 1, true)
    assert.matches("out.jsonl:2: answers line 3; here the spec stands on line 4", refused(nil, nil, "\n" .. input), 1, true)
    -- an error that was mended, at the second place and at the third, which is not one of the 1st, 2nd, 4th, …
    assert.matches("out.jsonl:2: is not what line 3", refused(nil, nil, (input:gsub('"gpus":0', '"gpus":8'))), 1, true)
    local first, bad, third = spec(64) .. "\n", spec(0) .. "\n", spec(128) .. "\n"
    local answers = run("", first .. third .. bad .. spec(192) .. "\n").stdout
    local mended = run("--resume " .. files.write("out.jsonl", answers), first .. third .. spec(8) .. "\n" .. spec(192) .. "\n")
    assert.same({ 2, "" }, { mended.status, mended.stdout })
    assert.matches("out.jsonl:3: is not what line 3", mended.stderr, 1, true)
    assert.matches("has more answers than standard input has specs, which are 1", refused(nil, nil, spec(64) .. "\n"), 1, true)
  end)

  -- A plan with another value of one field that says whose it is.
  local function damaged(field, value)
    return (full.stdout:match "^[^\n]*":gsub('"' .. field .. '":"[^"]*"', '"' .. field .. '":' .. value))
  end

  it("takes nothing but answers", function()
    for _, line in ipairs { "", "{}", "[]", "null", '{"error": {"line": 1}}', '{"status": "planned"}', "pipeplan: no", '{"policy": 1, "status": 2}',
                            damaged("engine_version", "null"), damaged("engine_version", '{"a":[]}'), damaged("date", "[1]"), damaged("digest", "{}") } do
      assert.matches("out.jsonl:1: no answer of plan --jsonl", refused(function() return line .. "\n" end), 1, true)
    end
    assert.matches("out.jsonl:2: no answer", refused(function(text) return (text:gsub('"status":2', '"status":0')) end), 1, true)
  end)

  it("that is refused leaves the file as it is, with what is torn in it", function()
    local bytes = full.stdout:sub(1, ends[4]) .. '{"status":"plan'
    for arguments, specs in pairs { [""] = (input:gsub('"gpus":64', '"gpus":72')), ["--date 2026-12-02"] = input, ["--jobs 2"] = spec(64) .. "\n" } do
      local path = files.write("out.jsonl", bytes)
      local result = run(arguments .. " -o " .. path .. " --resume " .. path, specs)
      assert.same({ 2, "" }, { result.status, result.stdout })
      assert.is_true(read(path) == bytes, arguments)
    end
    -- what is torn goes where no answer is missing, too
    local path = files.write("out.jsonl", full.stdout .. '{"status":"plan')
    assert.equal(full.status, run("-o " .. path .. " --resume " .. path, input).status)
    assert.is_true(read(path) == full.stdout)
  end)

  it("is no file to record in", function()
    local _, path = cut(ends[4])
    local before, link = read(path), files.directory {} .. "/link"
    assert(os.execute(string.format("ln '%s' '%s'", path, link)))
    for _, record in ipairs { path, link } do
      local result = run("--resume " .. path .. " --record " .. record, input)
      assert.same({ 2, "", "pipeplan: --record is " .. record .. ", which is read (--resume): expected another file\n" },
                  { result.status, result.stdout, result.stderr })
      assert.is_true(read(path) == before)
    end
    local missing = files.directory {} .. "/none"
    assert.equal(2, run("--resume " .. missing .. " --record " .. missing, input).status)
    assert.is_nil(read(missing))
  end)

  it("needs a file that can be read, and --jsonl", function()
    for path, why in pairs { ["no/such"] = "No such file or directory", ["/tmp"] = "Is a directory" } do
      local result = run("--resume " .. path, input)
      assert.same({ 2, "", "pipeplan: --resume " .. path .. ": cannot be read: " .. why .. "\n" }, { result.status, result.stdout, result.stderr })
    end
    assert.matches("--resume is for --jsonl", program.run("plan examples/specs/deepseek-v3.json --resume x").stderr, 1, true)
  end)
end)
