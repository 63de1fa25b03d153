import { apiSession, authenticator, authPolicy, identity } from '@overlay/model'
import { runPeriodically } from '@overlay/platform/async'
import {
  changeService,
  consumedPosition,
  recordingDeletions,
  startConsumer,
  waitForFollowers,
} from '@overlay/platform/change-log'
import { loadersOf, namesFrom } from '@overlay/platform/kind-store'
import { readSettings } from '@overlay/platform/process'
import { healthOf, runService } from '@overlay/platform/service'
import {
  ChangeServiceService,
  EntityServiceService,
  host,
  IdentityServiceService,
  MaintenanceServiceService,
  PkiServiceService,
  remote,
} from '@overlay/rpc'
import { checksOf } from './consumers/checks.js'
import { authorityEffects } from './consumers/pki.js'
import { policyEffects } from './consumers/policy.js'
import { routerEffects } from './consumers/sessions.js'
import { openAuthorities } from './credentials/authorities.js'
import { openHashing } from './credentials/hashing.js'
import { openTrust } from './credentials/trust.js'
import { integrity } from './jobs/integrity.js'
import { openJobs } from './jobs/jobs.js'
import { startReapingSessions } from './jobs/session-reaper.js'
import { removeUnfinished, takeSnapshot } from './jobs/snapshot.js'
import { entities } from './kinds/entities.js'
import { configTypes } from './login/config-types.js'
import { identityService } from './methods/identity-service.js'
import { identitySettings } from './settings.js'
import { forgetOldTries } from './store/login-attempts.js'

const trustAgeMs = 10_000
const forgetTriesEveryMs = 5 * 60_000

const settings = readSettings(identitySettings, process.env)
const migrations = `${import.meta.dirname}/../migrations`
await runService({ schema: 'identity', settings, migrations }, async (grounds) => {
  const { bus, connect, db, changeLog, log, serve } = grounds
  await using pki = connect('pki', settings.pkiPeers)
  await using policy = connect('policy', settings.policyPeers)
  await using sessions = connect('sessions', settings.sessionsPeers)

  const certifying = { ...remote(PkiServiceService, pki.peers), reach: pki.changes.reach }
  const hashing = openHashing({
    memoryKib: settings.hashMemoryKib,
    passes: settings.hashPasses,
    lanes: settings.hashLanes,
    running: settings.hashesRunning,
    waiting: settings.hashesWaiting,
  })
  await using authoritiesFollowed = startConsumer(changeLog, pki.source, authorityEffects, log)
  const authorities = openAuthorities(changeLog, authoritiesFollowed)
  const trust = openTrust(certifying, trustAgeMs)
  const parts = { changeLog, hashing, trust, authorities, pki: certifying }
  const names = namesFrom({ pki: pki.entities, policy: policy.entities, sessions: sessions.entities })
  await using policyFollowed = startConsumer(
    changeLog,
    policy.source,
    recordingDeletions('policy', ['services'], policyEffects(names)),
    log,
  )
  const own = entities({
    ...parts,
    names: namesFrom({ policy: policy.entities }),
    settled: grounds.waitForFollowers,
    others: { pki: pki.entities, sessions: sessions.entities },
  })
  await using _forgetting = runPeriodically(forgetTriesEveryMs, () =>
    forgetOldTries(db).catch((err: unknown) => log.warn({ err }, 'old login attempts not removed')),
  )
  const lifetimes = {
    timeoutSeconds: settings.sessionMinutes * 60,
    lifetimeSeconds: settings.sessionLifetimeMinutes * 60,
  }
  await using routersFollowed = startConsumer(changeLog, sessions.source, routerEffects, log)
  await using _reaping = startReapingSessions(changeLog, lifetimes, log)
  const loaders = loadersOf(
    db,
    [identity, authenticator, authPolicy, apiSession].map((entity) => ({ entity })),
  )
  const followed = { sessions: routersFollowed, pki: authoritiesFollowed, policy: policyFollowed }
  const maintenance = grounds.maintenance(
    checksOf({
      changeLog,
      names,
      sources: { pki: pki.source, policy: policy.source, sessions: sessions.source },
      followed,
      log,
    }),
  )
  const jobGrounds = {
    db,
    databaseUrl: settings.databaseUrl,
    owners: {
      identity: maintenance,
      pki: remote(MaintenanceServiceService, pki.peers),
      policy: remote(MaintenanceServiceService, policy.peers),
      sessions: remote(MaintenanceServiceService, sessions.peers),
    },
    snapshots: settings.snapshots,
    limitMs: settings.snapshotMinutes * 60_000,
    maxBytes: settings.snapshotMaxMib * 1024 * 1024,
    log,
  }
  await using jobs = openJobs(jobGrounds)
  removeUnfinished(jobGrounds).catch((err: unknown) => log.warn({ err }, 'unfinished snapshots not removed'))
  const calls = identityService({
    ...parts,
    configTypes: configTypes(
      async () => (await consumedPosition(db, 'policy')) !== undefined,
      policyFollowed,
    ),
    entities: own,
    lifetimes,
    keySecret: settings.keySecret,
    issuer: settings.totpIssuer,
    factorSettled: waitForFollowers(changeLog, [policy.changes]),
    jobs: { ...integrity(jobGrounds, jobs), takeSnapshot: takeSnapshot(jobGrounds, jobs) },
  })
  const hosted = [
    host(EntityServiceService, own),
    host(ChangeServiceService, changeService(changeLog, loaders, followed)),
    host(IdentityServiceService, calls),
    host(MaintenanceServiceService, maintenance),
  ]
  await serve(hosted, healthOf(changeLog, bus))
})
