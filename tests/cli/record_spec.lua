-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan plan --record`: one line of JSON for each decision, appended whole, before the answer is shown.

local files = require "policy_files"
local program = require "program"

require "pipeplan"
local json = require "pipeplan.base.json"
local schema = require "pipeplan.schema.decision"

teardown(files.remove)

local SPEC = "examples/specs/mixtral-8x7b.json"

local function new_path()
  return (files.write("other", ""):gsub("other$", "decisions.jsonl"))
end

local function lines_of(path)
  local list = {}
  for line in io.lines(path) do
    local decision = json.decode(line, path)
    for key in pairs(decision) do assert(schema.properties[key], key) end
    for _, key in ipairs(schema.required) do assert(decision[key] ~= nil, key) end
    list[#list + 1] = decision
  end
  return list
end

local function user()
  local handle = assert(io.popen "id -un 2>/dev/null || id -u")
  local name = handle:read "l"
  handle:close()
  return name
end

describe("plan --record", function()
  it("keeps to a file of its own: neither the page's, nor one that is read", function()
    local path = new_path()
    local other = path:gsub("[^/]*$", "./%0")
    local function contents(name)
      local handle = assert(io.open(name))
      local text = handle:read "a"
      handle:close()
      return text
    end
    local spec = files.write("spec.json", "{}")
    local function ends_with(words, message)
      local result = program.run("plan " .. spec .. " " .. words)
      assert.same({ 2, "" }, { result.status, result.stdout }, words)
      assert.matches(message, result.stderr, 1, true)
    end
    ends_with("--record " .. path .. " -o " .. path, "--output and --record are both " .. path .. ": expected a file for each")
    local handle = assert(io.open(path, "w"))
    handle:write "earlier\n"
    handle:close()
    ends_with("--record " .. path .. " -o " .. other, ": expected a file for each")
    assert.equal("earlier\n", contents(path))
    ends_with("--record " .. spec, "--record is " .. spec .. ", which is read: expected another file")
    assert.equal("{}", contents(spec))
    -- whatever is wrong with a file that an option reads, it stays as it is
    for _, read in ipairs { "--model %s", "--profile %s", "--kernels %s", "--calibration %s", "--inventory %s", "--cluster.network.measured %s" } do
      for _, written in ipairs { "-o %s", "--record %s", "--keep %s" } do
        local result = program.run("plan " .. read:format(path) .. " " .. written:format(path))
        assert.same({ 2, "", "earlier\n" }, { result.status, result.stdout, contents(path) }, read .. " " .. written)
      end
    end
    -- a model that only the spec names
    local model = files.write("model.json", contents "examples/models/tiny.json")
    local named = files.write("named.json", (contents "examples/specs/rules/does_not_fit.json"
      :gsub('"model": *"[^"]*"', '"model": "' .. model .. '"')))
    local before = contents(model)
    local result = program.run("plan " .. named .. " --record " .. model)
    assert.same({ 2, "", before }, { result.status, result.stdout, contents(model) }, result.stderr)
    assert.matches("--record is " .. model .. ", which is read", result.stderr, 1, true)
  end)

  it("is not where the answer goes", function()
    local path = new_path()
    local result = program.run("plan " .. SPEC .. " --record /dev/stdout")
    assert.same({ 2, "" }, { result.status, result.stdout })
    assert.matches("--record /dev/stdout is where standard output goes: expected a file of its own", result.stderr, 1, true)
    assert.equal(0, program.run("plan " .. SPEC .. " --record /dev/stdout -o " .. path).status)   -- nothing else goes there
  end)

  it("says when, who, for whom, from what, and what came out", function()
    local path = new_path()
    local before = os.date "!%Y-%m-%dT%H:%M:%SZ"
    local result = program.run("plan " .. SPEC .. " --date 2026-12-01 --format json --record-for alice --record " .. path)
    local after = os.date "!%Y-%m-%dT%H:%M:%SZ"
    assert.equal(0, result.status, result.stderr)
    local plan, decision = json.decode(result.stdout, "plan"), lines_of(path)[1]
    assert.is_true(before <= decision.time and decision.time <= after, decision.time)
    assert.equal(user(), decision.user)
    assert.equal("alice", decision["for"])
    assert.equal("planned", decision.verdict)
    assert.equal(0, decision.exit_status)
    assert.same({ plan.spec.digest, plan.policy.digest, plan.policy.stack, "2026-12-01", plan.engine_version, plan.schedule },
                { decision.spec.digest, decision.policy.digest, decision.policy.stack, decision.policy.date, decision.engine.version,
                  decision.schedule })
    assert.is_true(#decision.engine.library == 16 and #decision.engine.build == 16 and #decision.engine.catalogue == 16)
  end)

  it("adds nothing to a plan, which knows no time", function()
    local one = program.run("plan " .. SPEC .. " --date 2026-12-01 --format json")
    local two = program.run("plan " .. SPEC .. " --date 2026-12-01 --format json --record " .. new_path())
    assert.equal(one.stdout, two.stdout)
  end)

  it("appends: a refusal with its reasons, a spec that cannot be read, a policy that cannot be loaded, a rule that fails", function()
    local path = new_path()
    local broken, failing = files.write("broken.lua", "refuse {"), files.write("failing.lua",
      [[reject { id = "fails", message = "x", when = function(f) return f.gpus.x.y end }]])
    local statuses = {}
    for i, arguments in ipairs { "plan examples/specs/rules/too_deep.json", "plan /nonexistent.json", "plan " .. SPEC .. " --policy " .. broken,
                                 "plan " .. SPEC .. " --policy " .. failing } do
      statuses[i] = program.run(arguments .. " --record " .. path).status
    end
    local list = lines_of(path)
    assert.same({ 1, 2, 6, 3 }, statuses)
    for i, decision in ipairs(list) do
      assert.equal(statuses[i], decision.exit_status)
      assert.equal(i == 1 and "rejected" or "error", decision.verdict)
    end
    assert.equal("too_deep", list[1].reasons[1].id)
    assert.is_truthy(list[2].problem:find("/nonexistent.json", 1, true))
    assert.equal(json.null, list[2].spec)
    assert.is_truthy(list[2].policy.digest)
    assert.equal(json.null, list[3].policy)
    assert.is_truthy(list[4].spec.digest)
  end)

  it("says of a plan that was handed in whether it is what was planned", function()
    local path, plan = new_path(), program.run("plan " .. SPEC .. " --date 2026-12-01 --format json").stdout
    assert.equal(0, program.run("plan --verify - --record " .. path, plan).status)
    assert.equal(1, program.run("plan --verify - --record " .. path, (plan:gsub('"gpus_used": %d+', '"gpus_used": 8'))).status)
    local list = lines_of(path)
    assert.same({ file = "standard input", equal = true, differ = {} }, { file = list[1].verified.file, equal = list[1].verified.equal, differ = {} })
    assert.is_false(list[2].verified.equal)
    assert.equal("figures", list[2].verified.differ[1])
    assert.equal("planned", list[2].verdict)
  end)

  it("shows nothing, with 2, where it cannot be written, and says why", function()
    local folder = files.directory { x = "" }
    os.execute("mkfifo " .. folder .. "/fifo; ln -s /dev/full " .. folder .. "/full")
    for place, why in pairs { [folder .. "/none/decisions.jsonl"] = "No such file", [folder] = "Is a directory", [folder .. "/fifo"] = "no regular file",
                              [folder .. "/full"] = "no regular file", ["''"] = "No such file" } do
      for _, arguments in ipairs { "plan " .. SPEC, "plan --jsonl", "plan /nonexistent" } do
        local result = program.run(arguments .. " --record " .. place, "{}\n")
        assert.equal(2, result.status, place)
        assert.equal("", result.stdout)
        assert.is_truthy(result.stderr:find("--record", 1, true) and result.stderr:find(why, 1, true), result.stderr)
      end
    end
  end)

  it("shows nothing, with 2, where the line cannot be written then", function()
    local path = new_path()  -- what is shown goes through pipes; of files this process may write nothing
    local handle = io.popen(string.format("cd '%s' && bash -c 'unset LD_PRELOAD; ulimit -f 0; trap \"\" XFSZ; \"$@\"; echo status $?' - '%s' plan %s "
                                          .. "--record %s 2>&1 | cat", os.getenv "PIPEPLAN_SOURCE", os.getenv "PIPEPLAN", SPEC, path))
    local text = handle:read "a"
    handle:close()
    assert.equal("pipeplan: --record " .. path .. ": cannot be written: File too large\nstatus 2\n", text)
  end)

  it("is for --record alone that somebody is named", function()
    assert.equal(2, program.run("plan " .. SPEC .. " --record-for alice").status)
  end)

  it("has a line for each of a stream, in order, with the line of its spec, and none for what --resume takes over", function()
    local path, output = new_path(), new_path()
    local spec = '{"cluster":{"gpus":64,"accelerator":"H100-SXM"},"training":{"tokens":"1T"},"model":{"architecture":"dense","total":"7B","layers":32}}'
    local input = spec .. "\n\n{}\n" .. spec .. "\n"
    local run = "plan --jsonl --jobs 2 --date 2026-12-01 -o " .. output .. " --resume " .. output .. " --record " .. path
    assert.equal(2, program.run(run, input).status)
    local list = lines_of(path)
    assert.same({ 3, 1, 3, 4 }, { #list, list[1].line, list[2].line, list[3].line })
    assert.equal("error", list[2].verdict)
    assert.equal(list[1].spec.digest, list[3].spec.digest)
    assert.equal(2, program.run(run, input .. spec .. "\n").status)
    list = lines_of(path)
    assert.same({ 4, 5 }, { #list, list[4].line })
  end)

  it("keeps lines whole that several processes append at once, longer than a pipe's too", function()
    local path, input = new_path(), {}
    local site = files.write("long.lua", 'site "long" reject { id = "never", gpus = at_least(1), message = "' .. ("a reason of many words "):rep(200) .. '" }')
    for i = 1, 60 do
      input[i] = '{"run":"run ' .. i .. '","cluster":{"gpus":16,"accelerator":"H100-SXM"},"training":{"tokens":"1T"},'
        .. '"model":{"architecture":"dense","total":"7B","layers":32}}\n'
    end
    local specs = files.write("specs.jsonl", table.concat(input))
    local one = string.format("'%s' plan --jsonl --policy %s --record %s <%s >/dev/null 2>&1", os.getenv "PIPEPLAN", site, path, specs)
    os.execute("unset LD_PRELOAD; cd '" .. os.getenv "PIPEPLAN_SOURCE" .. "'; (" .. one .. ") & (" .. one .. ") & (" .. one .. ") & wait")
    assert.is_true(#assert(io.open(path)):read "l" > 4096)
    local seen = {}
    for _, decision in ipairs(lines_of(path)) do
      assert.equal("rejected", decision.verdict)
      seen[decision.run] = (seen[decision.run] or 0) + 1
    end
    for i = 1, 60 do assert.equal(3, seen["run " .. i]) end
  end)
end)
