-- Reads the tasks of a claimed set, in the order in which they joined: GroupsRole.readSet, one page.
--
-- KEYS
--   1 aggregationSet
-- ARGV
--   1 taskPrefix
--   2 from: how many ids to skip
--   3 length: how many ids to read
-- Returns
--   how many ids were read, and the tasks packed as [id, message, …]; ids without a message are left out

local ids = redis.call('ZRANGE', KEYS[1], ARGV[2], ARGV[2] + ARGV[3] - 1)
local tasks = {}
for i = 1, #ids do
  local message = redis.pcall('HGET', ARGV[1] .. ids[i], 'msg')
  if type(message) == 'string' then
    tasks[#tasks + 1] = ids[i]
    tasks[#tasks + 1] = message
  end
end
return { #ids, cmsgpack.pack(tasks) }
