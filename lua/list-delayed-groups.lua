-- Lists groups that delayed tasks have joined: GroupsRole.listDelayedGroups, one step.
--
-- KEYS
--   1 scheduled
--   2 groups
--   3 delayedGroups
-- ARGV
--   1 groupPrefix
--   2 now: seconds
-- Returns
--   the time of the next note ('' when there is none), and 1 when more of them are due
--
-- Uses shared/delayed-groups.lua

local call = redis.call
call('SCARD', KEYS[2])
call('ZCARD', KEYS[3])
local first = call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
local more = list_delayed_groups(KEYS[3], KEYS[2], ARGV[1], ARGV[2], first)
return { call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] or '', more and 1 or 0 }
