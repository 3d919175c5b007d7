// Below a path of a reverse proxy: signing in, the live list, a structure, an upload.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../harness.mjs'

export const needs = ['nginx']
const algorithms = `algorithms = ${JSON.stringify(fileURLToPath(new URL('../algorithms', import.meta.url)))}\n`

export default async function ({ server, browser }) {
  const port = await freePort()
  const address = `http://127.0.0.1:${port}/lab/molrun`
  await server.stop()
  await server.start(`${algorithms}public_url = "${address}"\n[proxy]\ntrusted = "127.0.0.1"\n[runner]\ncpus = 2\n`)
  const nginx = await startNginx(server, port)
  try {
    await walk(server, browser, address)
  } finally {
    nginx.kill('SIGTERM')
    await once(nginx, 'exit')
  }
}

/** Starts nginx with the location block of web/deploy/nginx.conf. */
async function startNginx(server, port) {
  const folder = join(server.dir, 'nginx')
  mkdirSync(folder)
  const example = readFileSync(new URL('../../../deploy/nginx.conf', import.meta.url), 'utf8')
  const location = example.replace('/molrun/', '/lab/molrun/').replace('http://127.0.0.1:8080/', server.url + '/')
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((p) => `${p}_temp_path ${folder}/${p};`).join(' ')
  writeFileSync(join(folder, 'nginx.conf'), `daemon off; master_process off; pid ${folder}/pid; error_log stderr; events {}\nhttp { access_log off; ${paths}\nserver { listen 127.0.0.1:${port};\n${location}\n} }\n`)
  const nginx = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr'])
  let said = ''
  nginx.stderr.on('data', (d) => (said += d))
  for (let i = 0; ; i++) {
    if ((await fetch(`http://127.0.0.1:${port}/lab/molrun/healthz`).catch(() => null))?.ok) return nginx
    assert.ok(i < 200 && nginx.exitCode === null, `nginx does not answer: ${said}`)
    await new Promise((r) => setTimeout(r, 100))
  }
}

async function walk(server, browser, address) {
  const key = server.key('lab', 'ann@lab.example')
  const behind = Object.create(server, { url: { value: address } })
  const ann = await browser.person(behind)
  const { page } = ann
  ann.expect(/status of 401/)
  await page.goto(address + '/')
  await page.getByLabel('API key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('No jobs yet.').waitFor()
  assert.equal(page.url(), address + '/ui/')
  await page.getByRole('link', { name: 'Jobs', exact: true }).click()
  await page.getByText('● live', { exact: true }).waitFor()
  const [cookie] = await ann.context.cookies()
  assert.ok(cookie.path === '/lab/molrun' || cookie.path === '/lab/molrun/', cookie.path)

  await server.api(key, 'POST', 'submit-job', { jobName: 'below', type: 'toy-fold', settings: { residues: 20 } })
  const row = page.getByRole('row', { name: /below/ })
  await row.getByText('Completed').waitFor()
  await ann.look('subpath-jobs')
  await row.getByRole('link', { name: 'below' }).click()
  await page.locator('[data-view=model] [data-ready]').waitFor()
  await ann.look('subpath-job')
  await page.reload() // a deep URL
  await page.getByRole('heading', { name: 'below' }).waitFor()
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download', exact: true }).click()
  assert.match((await download).suggestedFilename(), /^below/)

  await page.getByRole('link', { name: 'Files', exact: true }).first().click()
  writeFileSync(join(server.dir, 'up.fasta'), '>a\n' + 'MKTAYIAKQR\n'.repeat(1000))
  await page.locator('input[type=file]').setInputFiles(join(server.dir, 'up.fasta'))
  await page.locator('[data-upload="up.fasta"]').getByText('uploaded', { exact: true }).waitFor()
  await page.getByRole('row', { name: /up.fasta/ }).waitFor()
  await ann.open('new/toy-fold')
  await page.locator('#job-name').fill('below-2')
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await page.getByRole('heading', { name: 'below-2' }).waitFor()
  await page.getByText('Completed').first().waitFor()

  await page.getByRole('button', { name: 'Share' }).click()
  await page.getByRole('button', { name: 'Create link' }).click()
  const link = await page.getByLabel('Link').inputValue()
  assert.ok(link.startsWith(address + '/ui/shared/'), link)
  const stranger = await browser.person(behind)
  stranger.expect(/status of 401/)
  await stranger.page.goto(link)
  await stranger.page.getByRole('heading', { name: 'below-2' }).waitFor()
  stranger.fine('the share below a path')
  await stranger.close()
  await page.keyboard.press('Escape')
  await ann.open('api')
  await page.getByText('/submit-job').first().waitFor()
  ann.fine('below a path')
  await ann.close()
}
