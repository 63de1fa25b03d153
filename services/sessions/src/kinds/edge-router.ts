import { edgeRouter } from '@overlay/model'
import { type Kind, kind, newId } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { connectionsOf, edgeRows } from '../store/router.js'
import { interfacesOfRouters } from '../store/router-interfaces.js'
import { requireReservedName, withReservedNames } from './reserved-names.js'
import { deleteTerminators, enrollmentMembers, type RouterDeps, routerWrites } from './router-writes.js'

const offline = {
  hostname: '',
  isOnline: false,
  supportedProtocols: {},
  syncStatus: 'SYNC_UNKNOWN',
  versionInfo: { arch: '', buildDate: '', os: '', revision: '', version: '' },
}

/** The view has the connection and the enrollment. */
export const edgeRouters = ({ db, identity, pki, waitForFollowers }: RouterDeps): Kind =>
  kind(
    edgeRouter,
    {
      // clients see only routers that have enrolled
      scope: (_caller, perspective) => (perspective?.asClient ? sql`is_edge and is_verified` : sql`is_edge`),

      async writing(_tx, next, before, { context }) {
        requireReservedName(next, before, context)
        return before ? {} : { enrollmentId: newId('short') }
      },

      deleting: deleteTerminators,

      async view(db, rows, { context, perspective }) {
        const ids = rows.map(({ id }) => id)
        const connections = await connectionsOf(db, ids)
        const interfaces = perspective?.asClient ? undefined : await interfacesOfRouters(db, ids)
        const enrollments = await enrollmentMembers(pki, edgeRouter.kind, rows, context)
        return rows.map(({ id, fingerprint }) => {
          const connection = connections.get(id)
          return {
            ...offline,
            ...(connection && { ...connection, isOnline: true }),
            ...enrollments.get(id),
            interfaces: interfaces?.get(id),
            fingerprint: fingerprint ?? undefined, // wire: absent, not null, before the router has enrolled
          }
        })
      },
    },
    {
      followedRows: edgeRows,
      operations: (uniform) =>
        routerWrites({ ...uniform, ...withReservedNames(db, identity, uniform) }, waitForFollowers),
    },
  )
