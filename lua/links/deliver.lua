-- Applies parcels to their place: LinksRole.deliver. What they cause here is done in the same step.
--
-- KEYS
--   1 links
--   2 outbox
--   3 timers
--   4 waitingTasks
--   5 pending
--   6 scheduled
--   7 archived
--   8 completed
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4… body and data of each parcel
-- Returns
--   the parcels that this has caused, packed: to, key, body and data of each; empty when there are none; which parcels are of a kind
--   that it does not know, by their numbers from 0; the kind of the last of them, else ''; and what was damaged, else ''

L.open(ARGV[1], ARGV[2], ARGV[3])
-- A parcel of a newer version of this library stays where it is; the others do not wait for it.
local unknown, unknown_kind = {}, ''
for i = 4, #ARGV, 2 do
  local read, body = pcall(cjson.decode, ARGV[i])
  local kind = read and type(body) == 'table' and body.kind
  if not kind then
    L.damage = 'a parcel is no JSON'
  elseif L.on[kind] then
    L.post(L.place, ARGV[i], body, ARGV[i + 1])
  else
    unknown[#unknown + 1], unknown_kind = (i - 4) / 2, tostring(kind)
  end
end
L.work()
return { L.parcels(), unknown, unknown_kind, L.damage or '' }
