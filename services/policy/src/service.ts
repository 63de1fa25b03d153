import { catchUpFirst } from '@overlay/maintenance'
import { kinds as allKinds, postureCheckType, serviceEdgeRouterPolicy } from '@overlay/model'
import type { Methods, SessionsServiceService } from '@overlay/rpc'
import { changeService, type Loaders, startConsumers, type WaitForFollowers } from '@overlay/store/change-log'
import { entityService, kind, loadersOf, namesFrom, type Viewer } from '@overlay/store/kind-store'
import { ownChecks } from './consumers/checks.js'
import { identityChecks, identityConsumer } from './consumers/identity.js'
import { sessionsChecks, sessionsConsumer } from './consumers/sessions.js'
import { type EngineDeps, startEngine } from './engine/engine.js'
import { startReportingLapses } from './engine/report-lapses.js'
import { configs } from './kinds/config.js'
import { configTypes } from './kinds/config-type.js'
import { edgeRouterPolicies } from './kinds/edge-router-policy.js'
import { foreign } from './kinds/foreign.js'
import { postureChecks } from './kinds/posture-check.js'
import { services } from './kinds/service.js'
import { servicePolicies } from './kinds/service-policy.js'
import { policyMethods } from './methods/policy-methods.js'
import { openRouterModels } from './model/router-models.js'
import { loadPostureData } from './store/posture-data.js'
import { loadServiceConfigs } from './store/service-config.js'

export interface ServiceOptions extends Omit<EngineDeps, 'loaders'> {
  readonly viewers: { readonly identity: Viewer; readonly sessions: Viewer }
  readonly routers: Pick<Methods<SessionsServiceService>, 'describeRouters'>
  readonly waitForFollowers: WaitForFollowers
}

export type Service = Awaited<ReturnType<typeof openService>>

/** All of the service but its connections. It serves before it has loaded from others. */
export async function openService(deps: ServiceOptions) {
  const { changeLog, log, sources, viewers, waitForFollowers } = deps
  const { db } = changeLog
  const owned = [...allKinds.values()].filter(({ owner }) => owner === 'policy')
  const loaders: Loaders = {
    ...loadersOf(
      db,
      owned.map((entity) => ({ entity })),
    ),
    'service-configs': (ids) => loadServiceConfigs(db, ids),
    'posture-data': (ids) => loadPostureData(db, ids),
  }
  await using opening = new AsyncDisposableStack()
  const engine = opening.use(await startEngine({ ...deps, loaders }))
  const models = opening.use(openRouterModels(engine, log))
  const names = namesFrom(viewers)
  const definitions = {
    identity: identityConsumer(sources.identity, names),
    sessions: sessionsConsumer(sources.sessions, names),
  }
  const consumers = opening.use(startConsumers(changeLog, definitions, log))
  opening.use(startReportingLapses(changeLog, engine))
  const entities = entityService({
    changeLog,
    names,
    kinds: [
      configs,
      configTypes(waitForFollowers),
      edgeRouterPolicies,
      postureChecks,
      kind(postureCheckType),
      services(engine, waitForFollowers),
      kind(serviceEdgeRouterPolicy),
      servicePolicies(engine),
    ],
    foreign: foreign(engine),
  })
  const checked = {
    changeLog,
    names: namesFrom({ ...viewers, policy: entities }),
    sources,
    consumers,
  }
  const opened = opening.move()
  return {
    engine,
    entities,
    changes: changeService(changeLog, loaders, consumers),
    policy: policyMethods({ ...deps, engine, models, names }),
    checks: [
      catchUpFirst(consumers),
      ...sessionsChecks(checked),
      ...identityChecks(checked),
      ...ownChecks(checked),
    ],
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
