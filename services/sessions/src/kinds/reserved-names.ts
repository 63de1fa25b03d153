import { edgeRouter } from '@overlay/model'
import { type Context, Fault, type IdentityServiceService, type Methods, type Written } from '@overlay/rpc'
import { bodyIn, changedValues, type KindOperations, newId, required } from '@overlay/store/kind-store'
import { bestEffort, type Db, isAway } from '@overlay/store/postgres'
import { type RouterNaming, routerNaming } from '../store/router.js'

/** Keeps the names of routers for their identities. */
export type RouterNames = Pick<Methods<IdentityServiceService>, 'reserveRouterName' | 'releaseRouterName'>

type Writes = Pick<KindOperations, 'create' | 'update'>

/**
 * Another request has changed the router since its name was reserved. Not a Fault: a replica whose last sight of the
 * router is outdated must read again in a transaction.
 */
class NameNotReserved extends Error {}

const TRIES = 3

/** The name that each request has reserved. */
const reserved = new WeakMap<Context, string>()

/** In the transaction of a write: a router that begins to tunnel, or is renamed, has reserved its name. */
export function requireReservedName(next: RouterNaming, before: RouterNaming | null, context: Context): void {
  if (needsName(next, before) && reserved.get(context) !== next.name) throw new NameNotReserved()
}

const needsName = (next: RouterNaming, before: RouterNaming | null): boolean =>
  next.isTunnelerEnabled && !(before?.isTunnelerEnabled && before.name === next.name)

/**
 * A tunneling router acts as an identity with its name. A write that would give it the name of another identity is
 * refused: identity reserves the name before the router is written.
 */
export function withReservedNames(db: Db, names: RouterNames, { create, update }: Writes): Writes {
  /** Reserves before the write, and releases if it has surely failed. */
  const reserving = async (
    routerId: string,
    name: string,
    context: Context,
    write: () => Promise<Written>,
  ): Promise<Written> => {
    await names.reserveRouterName({ routerId, name }, context)
    reserved.set(context, name)
    try {
      return await write()
    } catch (err) {
      const isOver = err instanceof NameNotReserved || (err instanceof Fault && !isAway(err))
      if (isOver) {
        reserved.delete(context)
        await bestEffort('identity', names.releaseRouterName({ routerId, name }, context))
      }
      throw err
    }
  }

  return {
    create(request, context) {
      const { name, isTunnelerEnabled } = bodyIn(request.json) as Partial<RouterNaming>
      if (isTunnelerEnabled !== true || !name) return create(request, context)
      const id = request.id ?? newId(edgeRouter.ids)
      return reserving(id, name, context, () => create({ ...request, id }, context))
    },

    async update(request, context) {
      const { id } = required(request.ref)
      for (let left = TRIES - 1; ; left--) {
        const before = await routerNaming(db, id)
        if (!before) return update(request, context) // refuses
        const { values } = changedValues(edgeRouter, bodyIn(request.json), new Set(request.mask))
        const next = { ...before, ...values }
        const write = () => update(request, context)
        try {
          return await (needsName(next, before) ? reserving(id, next.name, context, write) : write())
        } catch (err) {
          if (!(err instanceof NameNotReserved)) throw err
          if (left === 0)
            throw new Fault('UNAVAILABLE', 'the router changes faster than its name can be reserved', err)
        }
      }
    },
  }
}
