import {
  databaseTlsSetting,
  keySecretSetting,
  processSettings,
  type Setting,
  setting,
} from '@overlay/process'
import { services } from './postgres/prepare-and-migrate.js'
import type { ServiceSchema } from './postgres/schemas.js'

const postgres = ['postgres', 'postgresql']

/** What `migrate` reads from its environment. */
export const migrateSettings = {
  databaseUrl: setting.url('DATABASE_URL', 'Database, with its owner', postgres),
  databaseTls: databaseTlsSetting,
  // of pki: nothing is written into a database whose keys it does not open
  keySecret: keySecretSetting.optional(),
  logLevel: processSettings.logLevel,
  logFormat: processSettings.logFormat,
  identityUrl: urlOf('identity'),
  pkiUrl: urlOf('pki'),
  policyUrl: urlOf('policy'),
  sessionsUrl: urlOf('sessions'),
}

function urlOf(service: (typeof services)[number]): Setting<string> {
  const env = `OVERLAY_${service.toUpperCase()}_DATABASE_URL`
  return setting.url(
    env,
    `\`DATABASE_URL\` of ${service}, with the role and the password to create`,
    postgres,
  )
}

/** The schemas with the roles and passwords that the services use. Throws if these cannot be created. */
export function schemasOf(
  ownerUrl: string,
  urls: Readonly<Record<(typeof services)[number], string>>,
): readonly ServiceSchema[] {
  const owner = new URL(ownerUrl)
  const schemas = services.map((schema) => {
    const { username, password, pathname } = new URL(urls[schema])
    const refuse = (why: string): never => {
      throw new Error(`settings: OVERLAY_${schema.toUpperCase()}_DATABASE_URL ${why}`)
    }
    if (!username || !password) refuse('must have a user and a password')
    if (username === owner.username) refuse('must not have the owner of the database as its user')
    if (pathname !== owner.pathname) refuse('must name the database of DATABASE_URL')
    return { schema, role: decodeURIComponent(username), password: decodeURIComponent(password) }
  })
  if (new Set(schemas.map(({ role }) => role)).size < schemas.length)
    throw new Error('settings: each service needs a database user of its own')
  return schemas
}
