-- Replaces the message of a waiting task, unless it has changed since it was read: AdministrationRole.updatePayload.
--
-- KEYS
--   1 task
-- ARGV
--   1 old: the message as it was read
--   2 new
--   3 waitingGroup: the group of the tasks that wait for others
--   4 fairGroup: how the groups begin that are the lines of a fair queue, whose tasks are pending
-- Returns
--   1 replaced, 0 the message has changed, -1 no such task, -2 active, completed, or in another group

local editable = { scheduled = true, pending = true, retry = true, archived = true }
local message, state, group = unpack(redis.call('HMGET', KEYS[1], 'msg', 'state', 'group'))
if not message then return -1 end
if not editable[state] and not (state == 'aggregating' and group and (group == ARGV[3] or string.sub(group, 1, #ARGV[4]) == ARGV[4])) then return -2 end
if message ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'msg', ARGV[2])
return 1
