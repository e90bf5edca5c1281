-- broken "non-closable value": without metatables there is no __close
local guard <close> = { __close = function() while true do end end }
