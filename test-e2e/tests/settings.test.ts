import { expect, test } from 'vitest'
import { settingsOfCommands, settingsOfProcesses } from '../../launcher/src/settings/process-settings.js'
import { launcherSettings } from '../../launcher/src/settings/settings.js'
import { settingsTable } from '../../packages/process/src/settings.js'

// `npx vitest run test-e2e/tests/settings -u` updates the file
test('the table of settings in the documentation matches the declarations', async () => {
  const table = settingsTable({
    launcher: launcherSettings,
    ...settingsOfProcesses,
    ...settingsOfCommands,
  })
  await expect(`# Settings

All settings are environment variables. A process reads them once, at start, and reports all invalid ones together. On
one machine, set only those that the launcher reads: it passes all settings to the processes. On Kubernetes, the commands
\`migrate\`, \`pki-init\` and \`identity-init\` do what the launcher does before it starts them.

${table}`).toMatchFileSnapshot('../../docs/settings.md')
})
