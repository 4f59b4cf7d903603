-- Frees a lock if this task holds it: UniquenessRole.release.
--
-- KEYS
--   1 lock
-- ARGV
--   1 id
-- Returns
--   whether it was freed

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
