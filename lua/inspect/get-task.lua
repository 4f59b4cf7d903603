-- Reads a task: InspectionRole.getTask.
--
-- KEYS
--   1 task
--   2 scheduled
--   3 retry
-- ARGV
--   1 id
-- Returns
--   message, state, result and score, each '' when it is missing, whether there is a result, and since when it is pending (nanoseconds,
--   or ''); nothing without a message

local message, state, result, since = unpack(redis.call('HMGET', KEYS[1], 'msg', 'state', 'result', 'pending_since'))
if not message then return {} end
local score
if state == 'scheduled' then score = redis.call('ZSCORE', KEYS[2], ARGV[1]) end
if state == 'retry' then score = redis.call('ZSCORE', KEYS[3], ARGV[1]) end
return { message, state or '', result or '', score or '', result and 1 or 0, since or '' }
