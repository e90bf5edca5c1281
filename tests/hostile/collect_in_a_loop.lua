-- broken "collectgarbage is not available"
while true do collectgarbage() end
