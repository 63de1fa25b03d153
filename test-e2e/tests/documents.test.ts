import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const documents = ['.', 'docs', 'docs/decisions', 'docs/reports'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name)),
)
const textOf = (document: string) => readFileSync(join(root, document), 'utf8')

/** Anchors of headings, as GitHub makes them. */
const anchorsOf = (document: string) =>
  [...textOf(document).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )

test.each(documents)('links in %s lead to files and headings', (document) => {
  const broken: string[] = []
  for (const [, link = ''] of textOf(document).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^https?:/.test(link)) continue
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? document : join(dirname(document), path)
    if (!existsSync(join(root, target))) broken.push(link)
    else if (anchor !== undefined && !anchorsOf(target).includes(anchor)) broken.push(link)
  }
  expect(broken).toEqual([])
})

test.each(documents)('files and folders that %s names exist', (document) => {
  const names = [
    ...textOf(document).matchAll(/`((?:packages|services|gateway|launcher|proto|docs|test-e2e)\/[\w./-]+)`/g),
  ]
  expect(names.map(([, name = '']) => name).filter((name) => !existsSync(join(root, name)))).toEqual([])
})

test('every alert names a runbook that exists', () => {
  const rules = textOf('deploy/kustomize/components/monitoring/alerts.yaml').split('- alert: ').slice(1)
  expect(rules.length).toBeGreaterThan(20)
  const anchors = anchorsOf('docs/runbooks.md')
  const without = rules.filter((rule) => {
    const [, anchor = ''] = /^ *runbook: docs\/runbooks\.md#(\S+)$/m.exec(rule) ?? []
    return !anchors.includes(anchor)
  })
  expect(without.map((rule) => rule.split('\n')[0])).toEqual([])
})

test('docs/runbooks.md names only alerts that exist', () => {
  const alerts = textOf('deploy/kustomize/components/monitoring/alerts.yaml')
  const named = textOf('docs/runbooks.md').match(/\bOverlay[A-Z]\w+/g) ?? []
  expect(named.filter((name) => !alerts.includes(`- alert: ${name}\n`))).toEqual([])
})

test('ARCHITECTURE.md lists every decision', () => {
  const listed = textOf('ARCHITECTURE.md').match(/docs\/decisions\/[\w-]+\.md/g)
  const decisions = documents.filter((document) => document.startsWith('docs/decisions/'))
  expect([...new Set(listed)].sort()).toEqual(decisions.sort())
})
