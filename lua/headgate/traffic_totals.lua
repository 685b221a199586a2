-- How many requests each worker has counted since it began, in memory that outlives it: what
-- a worker that was killed could not report is known exactly.
--
-- Each worker has a slot. The controller learns the total of a worker once that has ended and
-- all of its reports are there, and takes off what they had.
local ffi = require "ffi"
local log = require "headgate.log"
local page = require "headgate.page"

local _M = {}

local C = ffi.C
local ffi_cast = ffi.cast
local ffi_new = ffi.new
local ffi_string = ffi.string

ffi.cdef [[
struct hg_traffic_total { double worker, pid, requests; };
int kill(int pid, int signal);
]]

local dictionary = ngx.shared.hg_traffic

local PAGE = "page"
-- Before the number of a slot: the number of the worker that has it.
local SLOT = "w"
local BYTES = 65536
local SLOTS = math.floor(BYTES / ffi.sizeof("struct hg_traffic_total"))

local slots
-- That of a worker without a slot, which no other process reads.
local own = ffi_new("struct hg_traffic_total")


-- Runs once in the master of each configuration. The memory lives as long as the master.
function _M.init()
    local address = dictionary:get(PAGE) or page.new(BYTES)
    if address and dictionary:get(PAGE) == nil then
        dictionary:safe_add(PAGE, address)
    end
    if address then
        slots = ffi_cast("struct hg_traffic_total *", ffi_cast("intptr_t", address))
    end
end


-- claim(worker) -> where this worker has its total: the number of requests
function _M.claim(worker)
    local pid = ngx.worker.pid()
    for i = 0, slots and SLOTS - 1 or -1 do
        if slots[i].pid == pid then
            -- Of one that ended long ago.
            slots[i].pid = 0
        end
    end
    for i = 0, slots and SLOTS - 1 or -1 do
        if dictionary:safe_add(SLOT .. i, worker) then
            local slot = slots[i]
            slot.pid, slot.requests = pid, 0
            -- Last, since nothing else counts before.
            slot.worker = worker
            own = slot
            return slot
        end
    end
    log.err("count requests: what this worker can't report would not be known")
    return own
end


-- ended(keys) -> of workers that have ended, by name: their numbers and totals. keys are
-- those of the dictionary.
function _M.ended(keys)
    local list = {}
    for _, key in ipairs(keys) do
        local i = slots and tonumber(string.match(key, "^w(%d+)$"))
        if i then
            local slot = slots[i]
            local pid = slot.pid
            -- NGINX's workers have one user: others are not ours.
            if slot.worker == dictionary:get(key) and (pid == 0 or C.kill(pid, 0) ~= 0) then
                list[string.format("%s-%d", key, slot.worker)] = ffi_string(slot, ffi.sizeof(slot))
            end
        end
    end
    return list
end


-- Makes room for another worker, once the controller has the total.
function _M.forget(name)
    local key, worker = string.match(name, "^(w%d+)%-(%d+)$")
    if key and dictionary:get(key) == tonumber(worker) then
        dictionary:delete(key)
    end
end


return _M
