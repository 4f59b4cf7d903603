-- Takes or extends the right to keep a place: LinksRole.lease. It ends by the clock of Redis, or of the one who asks, whichever
-- is first: a clock that is wrong keeps nobody out for long.
--
-- KEYS
--   1 linksLease
-- ARGV
--   1 owner
--   2 ttl: milliseconds
--   3 nowMillis
-- Returns
--   1 when the owner has it

local held = redis.call('GET', KEYS[1])
if held then
  local ends, owner = string.match(held, '^(%d+) (.*)$')
  if ends and owner ~= ARGV[1] and tonumber(ends) > tonumber(ARGV[3]) then return 0 end
end
redis.call('SET', KEYS[1], string.format('%.0f %s', ARGV[3] + ARGV[2], ARGV[1]), 'PX', ARGV[2])
return 1
