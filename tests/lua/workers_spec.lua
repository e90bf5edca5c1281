-- engine.host.workers: work in child processes.

require "pipeplan"
local workers = require("engine").host.workers

describe("workers", function()
  it("return what their function returns, in order, however long", function()
    local texts = workers(3, function(number) return string.rep(tostring(number), 100000 * number) end)
    assert.equal(3, #texts)
    for i, text in ipairs(texts) do assert.equal(string.rep(tostring(i), 100000 * i), text) end
  end)

  it("change nothing of the state that started them", function()
    local count = 0
    local texts = workers(2, function() count = count + 1 return tostring(count) end)
    assert.same({ "1", "1" }, texts)
    assert.equal(0, count)
  end)

  it("give bytes back as they are", function()
    assert.same({ "\0\r\n\255" }, workers(1, function() return "\0\r\n\255" end))
    assert.same({ "" }, workers(1, function() return "" end))
  end)

  it("that die make the whole work fail", function()
    assert.error_matches(function() workers(2, function(number) if number == 2 then os.exit(3) end return "" end) end, "a worker process failed")
  end)

  it("are from 1 to 256", function()
    for _, count in ipairs { 0, -1, 257 } do
      assert.error_matches(function() workers(count, function() return "" end) end, "from 1 to 256")
    end
    assert.has_error(function() workers(1, "text") end)
  end)
end)
