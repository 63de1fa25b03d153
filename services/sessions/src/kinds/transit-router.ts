import { edgeRouter, transitRouter } from '@overlay/model'
import { Fault } from '@overlay/rpc'
import type { Kind } from '@overlay/store/kind-store'
import { kind, newId } from '@overlay/store/kind-store'
import { linkListenersIn } from '../channel/link-listeners.js'
import {
  connectionsOf,
  isEdgeRouter,
  linkListenersOf,
  type RouterConnection,
  transitRows,
} from '../store/router.js'
import { interfacesOfRouters } from '../store/router-interfaces.js'
import { deleteTerminators, enrollmentMembers, type RouterDeps, routerWrites } from './router-writes.js'

/** The list shows all routers. Edge routers are changed as such only. */
export const transitRouters = ({ db, pki, waitForFollowers }: Omit<RouterDeps, 'identity'>): Kind =>
  kind(
    transitRouter,
    {
      async writing(_tx, { fingerprint }, before, { isWritten }) {
        if (before?.isEdge) throw new Fault('CAN_NOT_UPDATE_ROUTER')
        // an administrator who names the certificate vouches for it: nothing is left to enroll
        if (fingerprint !== null && isWritten('fingerprint')) return { isVerified: true, enrollmentId: null }
        return before ? {} : { enrollmentId: newId('short') }
      },

      deleting: deleteTerminators,

      async view(db, rows, { context, perspective }) {
        const ids = rows.map(({ id }) => id)
        const connections = await connectionsOf(db, ids)
        const interfaces = await interfacesOfRouters(db, ids)
        const transit = rows.filter(({ isEdge }) => !isEdge)
        const enrollments = await enrollmentMembers(pki, transitRouter.kind, transit, context)
        const listeners = perspective?.asFabric
          ? await linkListenersOf(db, [...connections.keys()])
          : undefined
        return ids.map((id) => {
          const connection = connections.get(id)
          return {
            isOnline: connection !== undefined,
            ...enrollments.get(id),
            interfaces: interfaces.get(id),
            ...(connection && listeners && fabricMembers(connection, listeners.get(id))),
          }
        })
      },
    },
    {
      followedRows: transitRows,
      operations(uniform) {
        const writes = routerWrites(uniform, waitForFollowers)
        return {
          ...writes,
          async delete({ kind, id }, context) {
            // the change of an edge router is one of its own kind, by whichever name it is deleted
            return writes.delete({ kind: (await isEdgeRouter(db, id)) ? edgeRouter.kind : kind, id }, context)
          },
        }
      },
    },
  )

/** Members of connected routers that only the fabric API shows. */
const fabricMembers = ({ versionInfo }: RouterConnection, listeners: Buffer | undefined) => ({
  versionInfo,
  listenerAddresses: (linkListenersIn(listeners) ?? []).map(({ address, protocol }) => ({
    address,
    protocol,
  })),
})
