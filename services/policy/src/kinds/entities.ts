import { type Context, type EntityServiceService, Fault, type Methods, type Perspective } from '@overlay/rpc'
import { isAdmin } from '../domain/queries.js'
import { current, type Engine } from '../engine/engine.js'
import { watchView } from '../engine/view-watch.js'
import { selects } from './selects.js'

/** The uniform operations, where the engine has a say: who sees which services, and what policies link. */
export function entities(
  inner: Methods<EntityServiceService>,
  engine: Engine,
): Methods<EntityServiceService> {
  const { state } = engine

  const seenBy = (perspective: Perspective | undefined, context: Context): Context => {
    const wanted = perspective?.asIdentity
    if (!wanted) return context
    const names = engine.namesOf('identities')
    const identityId = names.has(wanted) ? wanted : [...names].find(([, name]) => name === wanted)?.[0]
    if (identityId === undefined) throw new Fault('NOT_FOUND', `identity with id or name ${wanted} not found`)
    const caller = { ...context.caller, identityId, isAdmin: isAdmin(state, identityId) }
    return { ...context, caller }
  }

  return {
    ...inner,

    async list(request, context) {
      if (request.kind !== 'services') return inner.list(request, context)
      await current(engine, context)
      const seen = seenBy(request.perspective, context)
      if (request.within || seen !== context) return inner.list(request, seen) // no gateway keeps these
      using view = watchView(engine, seen.caller)
      const page = await inner.list(request, seen)
      return page.next.length > 0 ? page : { ...page, contentKey: await view.key(context.signal) }
    },

    async get(request, context) {
      if (request.ref?.kind !== 'services') return inner.get(request, context)
      await current(engine, context)
      return inner.get(request, seenBy(request.perspective, context))
    },

    async select(request, context) {
      const { from, link, perspective } = request
      const select = from && selects[from.kind]?.[link]
      if (!select) return inner.select(request, context)
      await current(engine, context)
      return select(state, from.id, perspective)
    },
  }
}
