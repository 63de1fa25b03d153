import { hostname } from 'node:os'
import { initIdentity } from '@overlay/identity/init'
import { initPki } from '@overlay/pki/init'
import { tokenKeyRulesOf } from '@overlay/pki/settings'
import { splitAddress } from '@overlay/process/settings'
import type { Home } from '../home/home.js'
import { passwordFile } from '../home/home-files.js'
import type { Service } from '../servers/schemas.js'
import { isLoopbackName, type LauncherSettings } from '../settings/settings.js'
import type { Log } from './journal.js'

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
  log: Log,
): Promise<InitialCredentials> {
  const { address, ctrlAddress, adminPassword, adminUsername, trustDomain } = settings
  const { keySecrets } = home.secrets
  const [{ caPem }, admin] = await Promise.all([
    initPki({
      databaseUrl: urlOf('pki'),
      keySecret: keySecrets.pki,
      address,
      ctrlAddress,
      // a loopback address is not reachable from outside, so the machine's name stays free for its routers
      hostNames: isLoopbackName(splitAddress(address).host) ? [] : [hostname()],
      trustDomain,
      provided: { paths: settings, tokenKeyRules: tokenKeyRulesOf(settings) },
      log,
    }),
    initIdentity({
      databaseUrl: urlOf('identity'),
      username: adminUsername,
      ...(adminPassword !== undefined && { password: adminPassword }),
      keepPassword: (password) => home.write(passwordFile, `${password}\n`),
      log,
    }),
  ])
  return { caPem, admin }
}
