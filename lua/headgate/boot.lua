-- Runs before there are requests.
local ngx_re = require "ngx.re"
local process = require "headgate.process"
local settings = require "headgate.settings"

local _M = {}

local ngx = ngx

-- Far beyond a worker's life, below what NGINX's timers take (24.8 days).
local FAR = 20 * 24 * 3600


local function read_generation(run_dir)
    local file, err = io.open(run_dir .. "/generation")
    if not file then
        error("read the generation: " .. err)
    end
    local generation = tonumber(file:read("*a"))
    file:close()
    if not generation then
        error("the generation file does not contain a number")
    end
    return generation
end


-- Runs once in the master of each configuration, before its workers are made.
function _M.init(values)
    process.close_memory()
    for key, value in pairs(values) do
        settings[key] = value
    end
    settings.generation = read_generation(values.run_dir)
    -- Can only be set before the first expression.
    ngx_re.opt("jit_stack_size", settings.jit_stack)
    require("headgate.memory").init()
    if settings.traffic then
        require("headgate.traffic_report").init()
    end
    if settings.tracing then
        require("headgate.span_report").init()
    end
    if settings.piped_log then
        require("headgate.piped_log").unblock()
    end
    -- Loaded here, all code is shared by the workers.
    for _, module in ipairs({
        "access", "api", "balancer", "call", "certificate", "chain", "error_page", "header_filter", "client_hello",
        "route", "status",
    }) do
        require("headgate." .. module)
    end
    if settings.quic then
        require "headgate.quic"
    end
end


-- Counts this worker among those that accept connections. NGINX runs the timer early
-- when the worker must stop: from then on it accepts no connections.
local function count_in()
    local memory = require "headgate.memory"
    local generation, pid = settings.generation, ngx.worker.pid()
    memory.accept(generation, pid)

    local function wait()
        local ok, err = ngx.timer.at(FAR, function(premature)
            if premature then
                memory.stop_accepting(generation, pid)
                if settings.quic and not memory.flag("leaving") then
                    require("headgate.quic").stop()
                end
                return
            end
            wait()
        end)
        if not ok then
            require("headgate.log").err("wait for the end of the worker: ", err)
        end
    end

    wait()
end


-- Runs once in each worker.
function _M.init_worker()
    process.close_memory()
    math.randomseed(ngx.worker.pid() + ngx.now() * 1000)
    -- The worker that this one replaces may have died over it.
    require("headgate.memory").publish()
    count_in()
    if settings.traffic then
        require("headgate.traffic_report").init_worker()
    end
    if settings.tracing then
        require("headgate.span_report").init_worker()
    end
end


return _M
