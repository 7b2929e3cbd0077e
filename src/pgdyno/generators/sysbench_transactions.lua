-- Runs one of sysbench's own scripts unchanged and logs every transaction in pgbench's format:
--    client transaction latency_us script epoch_s epoch_us
-- so that pgdyno can count exactly what completed inside a slice. Environment:
--    PGDYNO_SCRIPT   name of the sysbench script, for example oltp_read_only
--    PGDYNO_LOG      prefix of the log files; one file per thread: PREFIX.THREAD
-- Lines are written at once (line buffering), so that ending sysbench by a signal loses nothing.

local ffi = require("ffi")

ffi.cdef [[
typedef struct { long tv_sec; long tv_nsec; } pgdyno_timespec;
int clock_gettime(int clock, pgdyno_timespec *time);
]]

local CLOCK_REALTIME = 0

require(os.getenv("PGDYNO_SCRIPT"))

local script_event = event
local script_thread_init = thread_init
local began = ffi.new("pgdyno_timespec")
local ended = ffi.new("pgdyno_timespec")
local log, thread, transaction

function thread_init()
   script_thread_init()
   thread = sysbench.tid
   transaction = 0
   log = assert(io.open(os.getenv("PGDYNO_LOG") .. "." .. thread, "w"))
   log:setvbuf("line")
end

function event()
   ffi.C.clock_gettime(CLOCK_REALTIME, began)
   script_event()
   ffi.C.clock_gettime(CLOCK_REALTIME, ended)
   transaction = transaction + 1
   local latency_us = (tonumber(ended.tv_sec) - tonumber(began.tv_sec)) * 1000000
      + math.floor((tonumber(ended.tv_nsec) - tonumber(began.tv_nsec)) / 1000)
   log:write(string.format("%d %d %d 0 %d %d\n", thread, transaction, latency_us,
      tonumber(ended.tv_sec), math.floor(tonumber(ended.tv_nsec) / 1000)))
end
