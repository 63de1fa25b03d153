import { gatewaySettings } from '@overlay/gateway/settings'
import { identitySettings } from '@overlay/identity/settings'
import { pkiSettings } from '@overlay/pki/settings'
import type { Settings } from '@overlay/platform/process/settings'
import { policySettings } from '@overlay/policy/settings'
import { sessionsSettings } from '@overlay/sessions/settings'

/** What each process reads from its environment. */
export const settingsOfProcesses = {
  gateway: gatewaySettings,
  identity: identitySettings,
  pki: pkiSettings,
  policy: policySettings,
  sessions: sessionsSettings,
} satisfies Record<string, Settings>
