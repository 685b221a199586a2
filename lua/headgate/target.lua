-- Targets of request lines.
local _M = {}

local string_byte = string.byte
local string_find = string.find
local string_format = string.format
local string_gsub = string.gsub
local string_match = string.match

local SLASH = 47


-- has_dot_segment reports whether a target has "." or ".." between slashes in its
-- path, in any encoding: another server may resolve them differently.
function _M.has_dot_segment(target)
    local path = string_gsub(string_match(target, "^[^?]*"), "%%2[eE]", ".")
    path = string_gsub(string_gsub(path, "%%[25][fFcC]", "/"), "\\", "/") .. "/"
    return string_find(path, "/%.%.?[/;\\]") ~= nil
end


local function percent(c)
    return string_format("%%%02X", string_byte(c))
end


-- query percent-encodes the bytes of a text that would end a request line, or a header's.
function _M.query(text)
    if string_find(text, "[%z\1-\32\127]") then
        return (string_gsub(text, "[%z\1-\32\127]", percent))
    end
    return text
end


-- safe does so, and has the text start with a slash.
function _M.safe(text)
    if string_byte(text) ~= SLASH then
        text = "/" .. text
    end
    return _M.query(text)
end


return _M
