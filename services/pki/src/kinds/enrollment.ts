import { enrollment, kinds, type RowOf, referenceTo } from '@overlay/model'
import { type Kind, kind, type Names } from '@overlay/platform/kind-store'
import type { Context } from '@overlay/rpc'
import { type OwnerKind, ownerKinds, rememberEnded } from '../store/enrollments.js'

type Row = RowOf<typeof enrollment>

export const enrollments = (names: Names): Kind =>
  kind(enrollment, {
    async view(_, rows, { context }) {
      const nameOf = await subjectNames(names, rows, context)
      return rows.map(({ token, jwt, caId, identityId, edgeRouterId, transitRouterId }) => ({
        token,
        jwt,
        // wire: members that it does not have are left out
        ...(caId && { caId }),
        ...(identityId && { identityId, identity: reference('identities', identityId, nameOf) }),
        ...(edgeRouterId && { edgeRouterId, edgeRouter: reference('edge-routers', edgeRouterId, nameOf) }),
        ...(transitRouterId && {
          transitRouterId,
          transitRouter: reference('transit-routers', transitRouterId, nameOf),
        }),
      }))
    },

    async deleting(tx, { id, identityId, edgeRouterId, transitRouterId }) {
      const owners = {
        identities: identityId,
        'edge-routers': edgeRouterId,
        'transit-routers': transitRouterId,
      }
      for (const kind of ownerKinds) {
        const ownerId = owners[kind]
        if (ownerId) await rememberEnded(tx, id, kind, ownerId)
      }
    },
  })

type NameOf = (kindName: OwnerKind, id: string) => string | undefined

async function subjectNames(names: Names, rows: readonly Row[], context: Context): Promise<NameOf> {
  const ask = (kindName: OwnerKind, ids: readonly (string | null)[]) =>
    names(kindName, [...new Set(ids.filter((id) => id !== null))], context)
  const [identities, edgeRouters, transitRouters] = await Promise.all([
    ask(
      'identities',
      rows.map(({ identityId }) => identityId),
    ),
    ask(
      'edge-routers',
      rows.map(({ edgeRouterId }) => edgeRouterId),
    ),
    ask(
      'transit-routers',
      rows.map(({ transitRouterId }) => transitRouterId),
    ),
  ])
  const known = { identities, 'edge-routers': edgeRouters, 'transit-routers': transitRouters }
  return (kindName, id) => known[kindName].get(id)
}

function reference(kindName: OwnerKind, id: string, nameOf: NameOf): object | undefined {
  const target = kinds.get(kindName)
  return target && referenceTo(target, id, nameOf(kindName, id))
}
