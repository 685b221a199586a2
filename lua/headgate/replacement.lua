-- What a rewrite directive of a tenant's snippet replaces the path with (headgate.program).
local _M = {}

local ipairs = ipairs
local ngx_var = ngx.var
local string_byte = string.byte
local string_char = string.char
local string_find = string.find
local string_format = string.format
local string_gmatch = string.gmatch
local string_gsub = string.gsub
local string_match = string.match
local string_sub = string.sub
local table_concat = table.concat
local tonumber = tonumber
local type = type

local EMPTY = {}


-- percent encodes a byte.
local function percent(c)
    return string_format("%%%02X", string_byte(c))
end
_M.percent = percent


-- in_arguments percent-encodes a group for the arguments of a URI, as NGINX does if the
-- client's path has anything encoded.
local function in_arguments(text)
    return (string_gsub(text, '[%z\1-\32"#%%&+;<>?\\^`{|}\127-\255]', percent))
end


local function encodes_groups()
    return string_find(string_match(ngx_var.request_uri, "^[^?#]*"), "[%%+]") ~= nil
end


-- decoded does for the path of a redirect what NGINX does: it decodes what needs no encoding.
local function decoded(target)
    local path, rest = string_match(target, "^([^?]*)(.*)$")
    local from, result = 1, {}
    while true do
        local at, _, digits = string_find(path, "%%(%x%x)", from)
        if not at then
            break
        end
        result[#result + 1] = string_sub(path, from, at - 1)
        local byte = tonumber(digits, 16)
        from = at + 3
        if byte > 37 and byte < 127 then
            result[#result + 1] = string_char(byte)
            if byte == 63 then
                break
            end
        else
            result[#result + 1] = string_sub(path, at, at + 2)
        end
    end
    return table_concat(result) .. string_sub(path, from) .. rest
end


-- redirect(step, request, fill) -> the target of a rewrite that is a redirect. fill: program.fill
function _M.redirect(step, request, fill)
    local parts, has_arguments = {}, false
    local encodes = encodes_groups()
    for i, piece in ipairs(step.to or EMPTY) do
        if type(piece) == "string" then
            parts[i] = piece
            has_arguments = has_arguments or string_find(piece, "?", 1, true) ~= nil
        else
            parts[i] = fill({ piece }, request)
            if encodes and piece[1] == "capture" then
                parts[i] = in_arguments(parts[i])
            end
        end
    end
    local target, arguments = decoded(table_concat(parts)), ngx_var.args
    if not step.no_arguments and arguments and arguments ~= "" then
        target = target .. (has_arguments and "&" or "?") .. arguments
    end
    return target
end


-- path(step, request, fill) -> path, and the arguments, nil if the replacement has none
function _M.path(step, request, fill)
    local parts, split = {}, nil
    local encodes = encodes_groups()
    for _, piece in ipairs(step.to or EMPTY) do
        if type(piece) ~= "string" then
            local text = fill({ piece }, request)
            parts[#parts + 1] = split and encodes and piece[1] == "capture" and in_arguments(text) or text
        else
            -- Arguments begin behind the last question mark.
            for text, mark in string_gmatch(piece, "([^?]*)(%??)") do
                parts[#parts + 1] = text
                if mark ~= "" then
                    split = #parts
                end
            end
        end
    end
    if not split then
        return table_concat(parts)
    end
    return table_concat(parts, "", 1, split), table_concat(parts, "", split + 1)
end


return _M
