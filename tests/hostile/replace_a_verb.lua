-- broken "'reject' would be a global"
reject = function() end
