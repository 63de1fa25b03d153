import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { excusing, openReport, rules } from './report.js'

test('a lost write excuses what it explains, while it may be lost', async () => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
  const directory = await mkdtemp(join(tmpdir(), 'overlay-report-'))
  onTestFinished(async () => {
    vi.restoreAllMocks()
    await rm(directory, { recursive: true })
  })
  const report = openReport(join(directory, 'log'), [rules.readBack, rules.private], () => ({}))
  let mayBeLost = true
  const excused = excusing(report, () => mayBeLost)
  excused.violated(rules.readBack, {})
  expect(report.violations()).toBe(0)
  excused.violated(rules.private, {})
  expect(report.violations()).toBe(1)
  mayBeLost = false
  excused.violated(rules.readBack, {})
  expect(report.violations()).toBe(2)
  expect(report.summary()).toContain('not judged after a failover 1')
})
