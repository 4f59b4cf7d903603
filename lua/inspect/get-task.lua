-- Reads a task: InspectionRole.getTask.
--
-- KEYS
--   1 task
--   2 scheduled
--   3 retry
--   4 waitingTasks
-- ARGV
--   1 id
--   2 waitingGroup: the group of the tasks that wait for others
--   3 fairGroup: how the groups begin that are the lines of a fair queue
-- Returns
--   message, state, result and score, each '' when it is missing, whether there is a result, since when it is pending, or held
--   (nanoseconds, or ''), and the waitlist of one that is held; the state of a task that waits for others is 'waiting', of one in a line
--   'pending', of one in a waitlist 'held'; nothing without a message
--
-- Uses shared/hold.lua

local fields = redis.call('HMGET', KEYS[1], 'msg', 'state', 'result', 'pending_since', 'group')
local message, state, result, since, group = unpack(fields)
local held_by
if not message then return {} end
local score
if state == 'scheduled' then score = redis.call('ZSCORE', KEYS[2], ARGV[1]) end
if state == 'aggregating' and group == ARGV[2] then
  state, score = 'waiting', redis.call('ZSCORE', KEYS[4], ARGV[1])
end
if state == 'aggregating' and group and string.sub(group, 1, #ARGV[3]) == ARGV[3] then state = 'pending' end
if state == 'retry' then
  score = redis.call('ZSCORE', KEYS[3], ARGV[1])
  local held_since, by = hold(KEYS[1], score)
  if held_since then
    state, since, held_by = 'held', held_since, by
  end
end
return { message, state or '', result or '', score or '', result and 1 or 0, since or '', held_by or '' }
