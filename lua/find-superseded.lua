-- Finds tasks that newer ones have superseded while they run: UniquenessRole.findSuperseded.
--
-- KEYS
--   1… the hash of each task
-- Returns
--   of each task the id of the newer one; '' when there is none

local found = {}
for i = 1, #KEYS do
  local fields = redis.pcall('HMGET', KEYS[i], 'state', 'superseded_by')
  found[i] = fields[1] == 'active' and fields[2] or ''
end
return found
