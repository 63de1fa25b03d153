import { terminator, transitRouter } from '@overlay/model'
import { pagesOf } from '@overlay/process/async'
import {
  type Context,
  type EntityServiceService,
  type Methods,
  type SessionsServiceService,
  Validation,
} from '@overlay/rpc'
import { VALIDATED_AT_ONCE } from '../limits.js'
import type { RouterDirectory } from '../routers/router-directory.js'
import type { RouterCheck } from './inspect-router.js'
import { validateCircuits } from './validate-circuits.js'
import { validateConnections } from './validate-connections.js'
import { type RouterLinkDeps, validateLinks } from './validate-links.js'
import { type RouterModelDeps, validateModel } from './validate-model.js'
import { validateRouterTerminators } from './validate-router-terminators.js'
import { type TerminatorCheckDeps, validateTerminators } from './validate-terminators.js'

export interface ValidateDeps
  extends Pick<RouterLinkDeps, 'topology'>,
    Pick<RouterModelDeps, 'model'>,
    TerminatorCheckDeps {
  readonly presence: RouterModelDeps['presence'] & TerminatorCheckDeps['presence']
  readonly directory: Pick<RouterDirectory, 'get'>
  readonly entities: Pick<Methods<EntityServiceService>, 'list'>
}

/** Compares what routers have with what is stored, some routers at a time. */
export const validate = (deps: ValidateDeps): Methods<SessionsServiceService>['validate'] =>
  async function* ({ what, filter, fix }, context) {
    const check = routerChecks(deps, fix)[what]
    const ids = await idsOf(deps, check ? transitRouter.kind : terminator.kind, filter, context)
    yield { count: ids.length, results: [] }
    for (const page of pagesOf(ids, check ? VALIDATED_AT_ONCE : VALIDATED_AT_ONCE * 10)) {
      context.signal.throwIfAborted()
      const results = check
        ? page.map((id) => check(deps, { id, name: deps.directory.get(id)?.name ?? '' }))
        : await validateTerminators(deps, page, fix)
      // each alone: some megabytes of one router fit a message, those of several do not
      for (const result of await Promise.all(results)) yield { count: 0, results: [Buffer.from(result)] }
    }
  }

/** Terminators are no routers. */
const routerChecks = (
  deps: ValidateDeps,
  fix: boolean,
): Readonly<Partial<Record<Validation, RouterCheck>>> => ({
  [Validation.VALIDATION_CIRCUITS]: validateCircuits,
  [Validation.VALIDATION_LINKS]: validateLinks(deps),
  [Validation.VALIDATION_SDK_TERMINATORS]: validateRouterTerminators('sdk-terminators', 'edge'),
  [Validation.VALIDATION_TUNNEL_TERMINATORS]: validateRouterTerminators('ert-terminators', 'tunnel'),
  [Validation.VALIDATION_CONNECTIONS]: validateConnections,
  [Validation.VALIDATION_MODEL]: validateModel(deps, fix),
})

/** wire: a filter may have a limit; none means all. */
async function idsOf(
  { entities }: Pick<ValidateDeps, 'entities'>,
  kind: string,
  filter: string,
  context: Context,
): Promise<readonly string[]> {
  const ids: string[] = []
  for (let after: Uint8Array = Buffer.alloc(0); ; ) {
    const query = { filter: filter || 'true limit none', sort: '', limit: '', offset: '' }
    const page = await entities.list(
      {
        kind,
        query: { ...query, roleFilter: [], roleSemantic: '', after: Buffer.from(after) },
        within: undefined,
        perspective: undefined,
      },
      context,
    )
    for (const { id } of JSON.parse(page.rows.toString()) as readonly { id: string }[]) ids.push(id)
    if (page.next.length === 0) return ids
    after = page.next
  }
}
