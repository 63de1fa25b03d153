import { hostname } from 'node:os'
import { finished } from 'node:stream/promises'
import { initIdentity, resealSecondFactors } from '@overlay/identity/init'
import { initPki } from '@overlay/pki/init'
import { openLog } from '@overlay/platform/process'
import { splitAddress } from '@overlay/platform/process/settings'
import type { Home } from './home.js'
import { openLogFile } from './log-file.js'
import type { Service } from './schemas.js'
import { isLoopbackName, type LauncherSettings, logLimits } from './settings.js'

export interface InitialCredentials {
  readonly caPem: string
  readonly admin: Admin
}

export interface Admin {
  readonly created: boolean
  readonly username: string
  readonly password?: string // if it was generated now
}

/** Creates what is missing: first keys and certificates by pki, first administrator by identity. */
export async function initialize(
  settings: LauncherSettings,
  home: Home,
  urlOf: (service: Service) => string,
): Promise<InitialCredentials> {
  const { address, ctrlAddress, adminPassword, adminUsername, logLevel, logFormat } = settings
  const { keySecrets } = home.secrets
  const file = openLogFile(home.path('launcher.log'), logLimits(settings))
  const destination = file.input()
  const log = openLog('launcher', { level: logLevel, format: logFormat, destination })
  const [{ caPem }, admin] = await Promise.all([
    initPki({
      databaseUrl: urlOf('pki'),
      keySecret: keySecrets.pki,
      address,
      ctrlAddress,
      // a loopback address is not reachable from outside, so the machine's name stays free for its routers
      hostNames: isLoopbackName(splitAddress(address).host) ? [] : [hostname()],
      log,
    }),
    initIdentity({
      databaseUrl: urlOf('identity'),
      username: adminUsername,
      ...(adminPassword !== undefined && { password: adminPassword }),
      log,
    }),
    resealSecondFactors({
      databaseUrl: urlOf('identity'),
      from: keySecrets.pki, // earlier versions shared it
      to: keySecrets.identity,
      log,
    }),
  ])
  await finished(destination.end())
  await file.close()
  return { caPem, admin }
}
