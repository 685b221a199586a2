-- The directive error_page: another response instead of an error that Headgate or NGINX makes.
-- A backend's errors reach clients, unless the profile catches them.
local error_page = require "headgate.error_page"
local program = require "headgate.program"
local requests = require "headgate.request"

local _M = {}

local string_byte = string.byte
local string_format = string.format
local string_gsub = string.gsub

local SLASH = 47

local FOUND = 302
local INTERNAL_ERROR = 500

local REDIRECTS = { [301] = true, [302] = true, [303] = true, [307] = true, [308] = true }


-- find is the page for a status, nil if there is none.
local function find(pages, status)
    for i = 1, #pages do
        local statuses = pages[i].statuses
        for j = 1, #statuses do
            if statuses[j] == status then
                return pages[i]
            end
        end
    end
end


local function percent(c)
    return string_format("%%%02X", string_byte(c))
end


-- run answers for a page instead of request.failed, if there is one.
function _M.run(request, pages)
    local page = find(pages, request.failed)
    if not page then
        return
    end
    local status = page.status or request.failed
    if page.name then
        -- A response with a text has this status, unless the named location decides.
        request.program.error_status = status ~= -1 and status or nil
        program.finish_in(request, page.name)
        return requests.finish(request, INTERNAL_ERROR)
    end
    local to = program.fill(page.to, request)
    if string_byte(to) == SLASH then
        return error_page.show(request, to, status)
    end
    -- NGINX writes the target as it is; control characters would end the line.
    local target = string_gsub(to, "[%z\1-\31\127]", percent)
    return requests.redirect(request, target, REDIRECTS[status] and status or FOUND)
end


return _M
