import { anyObject, named, object, text } from '@overlay/model/schema'
import { Fault } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { detail, empty } from '../http/answer.js'
import { json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { takes } from '../http/exchange.js'
import type { Handlers } from './operations.js'

const snapshotBody = json('snapshot', named('databaseSnapshotCreate', object({}, { path: text })), false)
const snapshotDetails = named('databaseSnapshotCreateDetails', object({ path: text }))
const member = json('member', anyObject, false)

/** wire: the answer of a controller that is not one of a Raft cluster. */
const noCluster = (): never => {
  throw new Fault('SERVER_NOT_RUNNING_IN_HA_MODE')
}

/** Jobs that the fabric API names otherwise than the management API, and those of another kind of cluster. */
export const fabricDatabase = ({ identity }: Services): Handlers => ({
  'POST /database': async (c) => {
    await identity.takeSnapshot({}, callContext(c))
    return empty(c)
  },
  // differs: the directory of snapshots is a setting; a request cannot write elsewhere
  'POST /database/snapshot': takes(
    snapshotBody,
    async (c) => detail(c, JSON.stringify({ path: (await identity.takeSnapshot({}, callContext(c))).name })),
    { about: { data: snapshotDetails, envelope: 'databaseSnapshotCreateResultEnvelope' } },
  ),
  'GET /raft/list-members': noCluster,
  'POST /raft/add-member': takes(member, noCluster),
  'POST /raft/remove-member': takes(member, noCluster),
  'POST /raft/transfer-leadership': takes(member, noCluster),
})
