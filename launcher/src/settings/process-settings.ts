import { gatewaySettings } from '@overlay/gateway/settings'
import { initSettings as identityInitSettings, identitySettings } from '@overlay/identity/settings'
import { initSettings as pkiInitSettings, pkiSettings } from '@overlay/pki/settings'
import { policySettings } from '@overlay/policy/settings'
import type { Settings } from '@overlay/process/settings'
import { sessionsSettings } from '@overlay/sessions/settings'
import { migrateSettings } from '@overlay/store/migrate-settings'

/** What each process reads from its environment. */
export const settingsOfProcesses = {
  gateway: gatewaySettings,
  identity: identitySettings,
  pki: pkiSettings,
  policy: policySettings,
  sessions: sessionsSettings,
} satisfies Record<string, Settings>

/** The same of the commands that prepare an installation without the launcher. */
export const settingsOfCommands = {
  migrate: migrateSettings,
  'pki-init': pkiInitSettings,
  'identity-init': identityInitSettings,
} satisfies Record<string, Settings>
