-- Deletes what a Go server has left that wrote a result when its task was gone: MaintenanceRole.deleteLateResults, some hashes.
--
-- KEYS
--   1… hashes of tasks: one that has anything but a result is left alone
-- Returns
--   how many were deleted

local call, try = redis.call, redis.pcall
local deleted = 0
for i = 1, #KEYS do
  if try('HLEN', KEYS[i]) == 1 and call('HEXISTS', KEYS[i], 'result') == 1 then deleted = deleted + call('DEL', KEYS[i]) end
end
return deleted
