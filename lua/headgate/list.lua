-- Lists of plain values.
local _M = {}


-- Reports whether two lists have the same values in the same order.
function _M.equal(a, b)
    if #a ~= #b then
        return false
    end
    for i = 1, #a do
        if a[i] ~= b[i] then
            return false
        end
    end
    return true
end


return _M
