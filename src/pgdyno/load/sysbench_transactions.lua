-- Runs one of sysbench's own scripts unchanged and logs every transaction in pgbench's format:
--    client transaction latency_us script epoch_s epoch_us
-- so that pgdyno can count exactly the transactions completed in a slice. A failed transaction has
-- failed:SQLSTATE:: instead of its latency. sysbench retries it with other keys if the error allows that; the
-- latency of the successful one includes the earlier attempts. Environment:
--    PGDYNO_SCRIPT   name of the sysbench script, for example oltp_read_only
--    PGDYNO_LOG      prefix of the log files; one file per thread: PREFIX.THREAD
-- Output is line buffered, so ending sysbench by a signal loses nothing.

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
local log, thread, transaction, is_repeated

local function write(word)
   log:write(string.format("%d %d %s 0 %d %d\n", thread, transaction, word,
      tonumber(ended.tv_sec), math.floor(tonumber(ended.tv_nsec) / 1000)))
end

function thread_init()
   script_thread_init()
   thread = sysbench.tid
   transaction = 0
   log = assert(io.open(os.getenv("PGDYNO_LOG") .. "." .. thread, "w"))
   log:setvbuf("line")
end

function event(...)
   if not is_repeated then
      ffi.C.clock_gettime(CLOCK_REALTIME, began)
   end
   local is_done, problem = pcall(script_event, ...)
   ffi.C.clock_gettime(CLOCK_REALTIME, ended)
   is_repeated = not is_done
   if is_done then
      transaction = transaction + 1
      write(string.format("%d", (tonumber(ended.tv_sec) - tonumber(began.tv_sec)) * 1000000
         + math.floor((tonumber(ended.tv_nsec) - tonumber(began.tv_nsec)) / 1000)))
   else
      if type(problem) == "table" and problem.errcode == sysbench.error.RESTART_EVENT then
         write("failed:" .. problem.sql_state .. "::")
      end
      error(problem, 0)
   end
end
