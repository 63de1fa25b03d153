import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const documents = [
  ...readdirSync(root),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => join('docs', name)),
].filter((name) => name.endsWith('.md'))
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

const decisions = documents.filter((document) => /^docs\/decisions\/.+\/\d{4}-/.test(document))

test('docs/decisions/README.md lists every decision with its title', () => {
  const listed = [...textOf('docs/decisions/README.md').matchAll(/^- \[(.+)\]\(([^)]+)\)/gm)].map(
    ([, title, path]) => `${path}: ${title}`,
  )
  const titles = decisions.map((document) => {
    const [, title] = /^# (.+)$/m.exec(textOf(document)) ?? []
    return `${document.slice('docs/decisions/'.length)}: ${title}`
  })
  expect(listed.sort()).toEqual(titles.sort())
})

test('every decision has a number of its own, its title and a status', () => {
  const numbers = decisions.map((document) => Number(/\/(\d{4})-/.exec(document)?.[1]))
  expect(numbers.length).toBeGreaterThan(50)
  expect(numbers.sort((a, b) => a - b)).toEqual(numbers.map((_, index) => index + 1))
  const without = decisions.filter((document) => {
    const number = Number(/\/(\d{4})-/.exec(document)?.[1])
    return !new RegExp(`^# ${number}\\. .+\n\nStatus: (accepted|superseded|withdrawn)`).test(textOf(document))
  })
  expect(without).toEqual([])
})
