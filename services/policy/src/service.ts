import {
  config,
  configType,
  edgeRouterPolicy,
  postureCheck,
  postureCheckType,
  service,
  serviceEdgeRouterPolicy,
  servicePolicy,
} from '@overlay/model'
import {
  type Bus,
  type ChangeLog,
  changeService,
  recordingDeletions,
  type Source,
  startConsumer,
} from '@overlay/platform/change-log'
import { entityService, kind, loadersOf, namesFrom, type Viewer } from '@overlay/platform/kind-store'
import type { Check } from '@overlay/platform/maintenance'
import type {
  ChangeServiceService,
  EntityServiceService,
  Methods,
  PolicyServiceService,
  SessionsServiceService,
} from '@overlay/rpc'
import type { Logger } from 'pino'
import { checksOf } from './consumers/checks.js'
import { identityEffects } from './consumers/identity.js'
import { routerEffects } from './consumers/sessions.js'
import { current, type Engine, startEngine } from './engine/engine.js'
import { startTellingLapses } from './engine/lapses.js'
import { configSeams } from './kinds/config.js'
import { configTypeSeams } from './kinds/config-type.js'
import { entities } from './kinds/entities.js'
import { postureCheckSeams } from './kinds/posture-check.js'
import { serviceSeams } from './kinds/service.js'
import { edgeRouterPolicySeams, servicePolicySeams } from './kinds/service-policy.js'
import { policyService } from './methods/policy-service.js'
import { postureDataTold } from './store/posture-data.js'
import { allServiceConfigs } from './store/service-config.js'

export interface ServiceOptions {
  readonly changeLog: ChangeLog
  readonly databaseUrl: string
  readonly bus: Bus
  readonly log: Logger
  readonly sources: { readonly identity: Source; readonly sessions: Source }
  readonly viewers: { readonly identity: Viewer; readonly sessions: Viewer }
  readonly routers: Pick<Methods<SessionsServiceService>, 'describeRouters'>
}

export interface Service extends AsyncDisposable {
  readonly engine: Engine
  readonly entities: Methods<EntityServiceService>
  readonly changes: Methods<ChangeServiceService>
  readonly policy: Methods<PolicyServiceService>
  readonly checks: readonly Check[]
}

/** All of the service but its connections. It serves before it has loaded from others. */
export async function openService(options: ServiceOptions): Promise<Service> {
  const { changeLog, log, sources, viewers } = options
  const loaders = {
    ...loadersOf(
      changeLog.db,
      [
        config,
        configType,
        edgeRouterPolicy,
        postureCheck,
        service,
        serviceEdgeRouterPolicy,
        servicePolicy,
      ].map((entity) => ({ entity })),
    ),
    'service-configs': (ids?: readonly string[]) => allServiceConfigs(changeLog.db, ids),
    'posture-data': (ids?: readonly string[]) => postureDataTold(changeLog.db, ids),
  }
  const engine = await startEngine({ ...options, ...sources, loaders })
  const names = namesFrom(viewers)
  const followed = {
    identity: startConsumer(
      changeLog,
      sources.identity,
      recordingDeletions('identity', ['identities'], identityEffects(names)),
      log,
    ),
    sessions: startConsumer(
      changeLog,
      sources.sessions,
      recordingDeletions('sessions', ['edge-routers'], routerEffects(names)),
      log,
    ),
  }
  const lapses = startTellingLapses(changeLog, engine)
  const kinds = [
    kind(config, configSeams),
    kind(configType, configTypeSeams),
    kind(edgeRouterPolicy, edgeRouterPolicySeams),
    kind(postureCheck, postureCheckSeams),
    kind(postureCheckType),
    kind(service, serviceSeams(engine.state)),
    kind(serviceEdgeRouterPolicy),
    kind(
      servicePolicy,
      servicePolicySeams(engine.state, (context) => current(engine, context)),
    ),
  ]
  const own = entities(entityService({ changeLog, kinds, names }), engine)
  return {
    engine,
    entities: own,
    checks: checksOf({
      changeLog,
      names: namesFrom({ ...viewers, policy: own }),
      sources,
      followed,
      log,
    }),
    changes: changeService(changeLog, loaders, followed),
    policy: policyService(changeLog, engine, options.routers, namesFrom(viewers)),
    async [Symbol.asyncDispose]() {
      await lapses[Symbol.asyncDispose]()
      for (const one of Object.values(followed)) await one[Symbol.asyncDispose]()
      await engine[Symbol.asyncDispose]()
    },
  }
}
