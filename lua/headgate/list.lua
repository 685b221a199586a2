-- Lists of plain values, and sets of indexes into them.
local _M = {}

local pairs = pairs


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


-- Reports whether a list has a value.
function _M.contains(list, value)
    for i = 1, #list do
        if list[i] == value then
            return true
        end
    end
    return false
end


-- union(a, b, count) -> the set of the indexes in one of two sets, nil if these are all from 1
-- to count. a may have others as well.
function _M.union(a, b, count)
    local both, size = {}, 0
    for i in pairs(a) do
        both[i] = true
    end
    for i = 1, count do
        if a[i] or b[i] then
            both[i], size = true, size + 1
        end
    end
    return size < count and both or nil
end


return _M
