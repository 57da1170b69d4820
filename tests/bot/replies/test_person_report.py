"""What a person's mail says of a regression: invented mails in the shapes of real ones, and junk."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from email.message import EmailMessage
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.accuracy.people import figures, read_threads
from benchmarks.accuracy.replies import SHARED
from bot.mail.settings import BotSettings
from bot.replies.person_report import OFFERED, culprit_named, is_commanded, is_performance, read_report
from bot.replies.reading import understand
from tracker.domain.archived_reports import PersonReport, placeholder, read_stored

SETTINGS = BotSettings(address="perfbot@bench.example", robots=frozenset({"robot@bench.example"}))
SHA = "7d3e91c0a45b28f6" + "0" * 24


def mail(subject: str, text: str, **headers: str) -> bytes:
    message = EmailMessage()
    message["From"] = "Pat Penguin <pat@users.example>"
    message["To"] = "linux-mm@vger.kernel.org"
    message["Subject"] = subject
    message["Date"] = "Tue, 1 Sep 2026 10:00:00 +0000"
    message["Message-ID"] = "<first@users.example>"
    for name, value in headers.items():
        del message[name]
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message.as_bytes()


def report_of(subject: str, text: str, **headers: str) -> PersonReport:
    report = read_report(understand(mail(subject, text, **headers), SETTINGS))
    assert report
    return report


# What one sentence says: the fact, the sentence, and the value.
FACTS: tuple[tuple[str, str, str], ...] = (
    # The culprit
    ("culprit", f"I bisected it to commit {SHA[:12]}.", SHA[:12]),
    ("culprit", f"{SHA} is the first bad commit", SHA),
    ("culprit", f"# first bad commit: [{SHA}] mm: walk cold folios first", SHA),
    ("culprit", f"The regression was introduced by {SHA[:10]} (mm: walk cold folios first).", SHA[:10]),
    ("culprit", f'Since commit {SHA[:12]} ("mm: walk cold folios first") reads are slow.', SHA[:12]),
    ("culprit", f"mm: walk cold folios first ({SHA}) slows it down.", SHA),
    ("culprit", f"Reverting {SHA[:12]} cures it.", SHA[:12]),
    ("culprit", 'It comes from commit 7d3e91c ("mm: walk cold folios first"), I bisected it.', "7d3e91c"),
    (
        "culprit",
        f"On the HEAD of net-next[0] I see a drop. The commit [1] introduced the regression.\n\n"
        f'[0] 0c9d11ea55ab ("mm: free it once")\n[1] {SHA[:12]} ("mm: walk cold folios first")\n',
        SHA[:12],
    ),
    (
        "culprit",
        f"I found a bug report and reverted the commit 0c9d11ea55ab. This did not resolve the issue.\n\n"
        f"I performed a bisection: it was slower after {SHA[:12]}.",
        SHA[:12],
    ),
    ("culprit", f'It came with commit {SHA[:12]} ("mm: do it").\nDropping caches did not help.', SHA[:12]),
    ("culprit", "Mesa: AMD Radeon RX 6600 (b1a3c5d)\nfio: built from git master (3c1b2a9)\n", ""),
    ("culprit", "The loss is due to commit 100000b rows.", ""),
    ("culprit", f'[1] {SHA[:12]} ("mm: walk cold folios first") introduced a slowdown of 10%.', SHA[:12]),
    (
        "culprit",
        "On net-next[0] I bisected the regression to [1].\n\n"
        f'[0] 0c9d11ea55ab ("mm: free it once")\n[1] {SHA[:12]} ("mm: walk cold folios first")\n',
        SHA[:12],
    ),
    ("culprit", f"The kernel is based on {SHA[:12]}.", ""),
    ("culprit", f"{SHA[:12]} resolved the same problem upstream.", ""),
    ("culprit", f"I run {SHA[:12]} (\"Merge tag 'mm-fixes'\").", ""),
    (
        "culprit_title",
        f"The regression came with {SHA[:12]} (mm: walk cold folios first).",
        "mm: walk cold folios first",
    ),
    (
        "culprit_title",
        f"It is due to\n\ncommit {SHA}\nAuthor: Dana <dana@dev.example>\nDate:   Mon Aug 31 2026\n\n    mm: be slow\n",
        "mm: be slow",
    ),
    (
        "culprit_author",
        f"It is due to\n\ncommit {SHA}\nAuthor: Dana <dana@dev.example>\nDate:   Mon Aug 31 2026\n\n    mm: be slow\n",
        "Dana <dana@dev.example>",
    ),
    (
        "culprit_title",
        f"The bisection ended at\n\n  commit {SHA}\n  Author: Dana <dana@dev.example>\n  Date:   Mon Aug 31 2026\n\n"
        "      mm: be slow\n",
        "mm: be slow",
    ),
    ("culprit", f"Bisected. First bad is\n\n  {SHA[:12]} mm: walk cold folios first\n\nI can test.", SHA[:12]),
    ("culprit", f"I could trace this to commit\n\n  {SHA}\n  mm: walk cold folios first\n", SHA),
    ("culprit", f'Where\n\n{SHA[:12]} ("mm: walk cold folios first")\n\nis what the bisect gave me.', SHA[:12]),
    ("culprit_title", 'The bisect points to commit "mm: walk cold folios first".', "mm: walk cold folios first"),
    ("culprit_title", 'I read the commit "mm: walk cold folios first".', ""),
    ("culprit", "The slowdown was introduced by 7d3e91c, which came with 6.12.", "7d3e91c"),
    ("culprit", "I see 1a2b3c4 in the log, and it is slower.", ""),
    ("culprit_title", f"It is slow since [{SHA}] mm: walk cold folios first", "mm: walk cold folios first"),
    ("culprit", f'The patch is "mm: walk cold folios first" (commit {SHA[:12]}), it seems.', SHA[:12]),
    ("culprit_title", f'The patch is "mm: walk cold folios first" (commit {SHA[:12]}).', "mm: walk cold folios first"),
    (
        "culprit_title",
        f'The bisection ended at:\n- {SHA[:13]} Revert "mm: walk cold folios\nfirst" for 6.12',
        'Revert "mm: walk cold folios first"',
    ),
    (
        "culprit",
        f'Last good commit:\n\n  0c9d11ea55ab ("mm: free it once")\n\nFirst bad commit:\n\n'
        f'  {SHA[:12]} ("mm: walk cold folios first")\n',
        SHA[:12],
    ),
    ("culprit", f"The loop is called often, which since\n6.2 ({SHA}) allocates in bulk.", SHA),
    # Versions
    ("bad", "It dropped between kernels 6.11 and 6.12.", "6.12"),
    ("good", "It dropped between kernels 6.11 and 6.12.", "6.11"),
    ("bad", "After the upgrade from 6.11.4 to 6.12.1 it is slow.", "6.12.1"),
    ("good", "Throughput is lower in 6.12 compared to 6.6.", "6.6"),
    ("bad", "Since v6.12-rc2 everything is slower.", "v6.12-rc2"),
    ("good", "Since v6.12-rc2 everything is slower.", "before 6.12-rc2"),
    ("good", "The v6.11 kernel is totally fine, and v6.12 is slow.", "v6.11"),
    ("bad", "The v6.11 kernel is totally fine, and v6.12 is slow.", "v6.12"),
    ("bad", "When switching from CentOS 7.9 to 8.4 we saw a drop.", "CentOS 8.4"),
    ("bad", "It got slower (6.11 vs 6.12).", "6.12"),
    ("good", "It got slower (6.12 vs 6.11).", "6.11"),
    ("good", "The build takes less than 3 minutes with the 6.11 kernel, and longer than that with 6.12.", ""),
    # A stable update may be the bad one
    ("bad", "5.15.120 is slower than 6.1.10 by far.", "5.15.120"),
    ("bad", "Throughput dropped when we moved from 6.5 to 6.1.80.", "6.1.80"),
    # What follows is a unit, or only begins like one
    ("good", "6.12 is slower than 6.6 using fio.", "6.6"),
    ("bad", "Slow in 6.12 and 20% slower in 6.13, 6.6 is fine.", "6.12"),
    ("bad", "Performance dropped from 6.12 to 5.10 GB/s.", ""),
    ("bad", "We lost throughput, 5.10 vs 6.12 Mpps.", ""),
    # Not of the kernel
    ("bad", "With MLNX 2.4.1 vs 2.3.0 it is slower.", ""),
    ("bad", "It is slower from glibc 2.3.4 to 2.5.12.", ""),
    ("bad", "Bad writes since 2.6.38.8.", "2.6.38.8"),
    ("good", "With encryption it is much faster (9.8 vs 7.4 Gb/s), which is a drop.", ""),
    ("bad", "I use fio 3.36 and gcc 7.5.", ""),
    ("bad", "It fell by 3.5 GB/s.", ""),
    ("bad", "The regression:\n\n   4.22  +-3%   31.70  +-5%  perf-profile.free_pages\n", ""),
    ("good", "pgbench: 11.8k tps with 6.11, 7.6k with 6.12-rc4.", "6.11"),
    # Two of a sentence, in their order and not as one list
    ("good", "On 6.6.96 it is much slower when compared to the previous 6.6.93 tag.", "6.6.93"),
    ("bad", "It is slower, from 3 minutes with the 6.11 kernel to more than double with the 6.12 kernel.", "6.12"),
    ("good", "The drop is gone in 6.12; it was seen in 6.6.", ""),
    ("bad", "The slowdown that came in 6.6 was fixed in 6.12.", "6.6"),
    ("good", "6.12 is as slow as 6.6 here.", ""),
    ("good", "The load average is 4.5 when it is slow on 6.12.", ""),
    ("good", "It starts with 6.10 and persists through 6.16, all slower.", ""),
    ("bad", "It is slower in 6.11 and in 6.12.", "6.11"),
    ("good", "I downgraded from 6.12 to 6.11, which undid the slowdown.", "6.11"),
    ("good", "Was it broken between\n6.11.4 and 6.12.5?", "6.11.4"),
    ("bad", "A regression between 6.11.x and 6.12.x, seen on 6.12.7.", "6.12.7"),
    ("bad", "From 3.10.0-862.11.6.el7 to 3.10.0-957.1.3.el7 it is slower.", "3.10.0-957.1.3.el7"),
    ("bad", "Sphinx 18.2.3 is slower.", ""),
    # How much
    ("magnitude", "It went from 170MB/s to 11MB/s.", "170 MB/s -> 11 MB/s"),
    ("magnitude", "We see a 30% drop.", "-30 %"),
    ("magnitude", "The build went from 3 seconds to 2 minutes.", ""),  # units that differ are not compared
    ("magnitude", "Throughput dropped from 1.2 GB/s to 900 MB/s.", ""),
    ("magnitude", "It takes longer, from 12,5 s to 20 s.", "12,5 s -> 20 s"),
    ("magnitude", "It is slower since Ubuntu 20.04 to 22.04.", ""),
    ("magnitude", "The latency increased by 40%, which is worse.", "+40 %"),
    ("magnitude", "We noticed a thirty percent drop in performance.", "-30 %"),
    ("magnitude", "It is 3x slower.", "3x slower"),
    ("magnitude", "The score is 2870 before the patch, while it is 1780 after it, a regression.", "2870 -> 1780"),
    ("magnitude", "It usually takes 1m20s. Now it takes 20 minutes, much slower.", "1m20s -> 20 minutes"),
    ("magnitude", "We are at 50% CPU.", ""),
    ("magnitude", "A regression: kswapd takes 100% CPU.", ""),
    ("magnitude", "It takes normally 41s to convert, now with 6.12-rc1 it takes about 2m 36s.", "41s -> 2m 36s"),
    ("magnitude", "It is 3 to 4 times slower.", "3 to 4 times slower"),
    (
        "magnitude",
        "I got 39.6 Gb/sec. After the upgrade the rate dropped to about 20Gb/sec.",
        "39.6 Gb/sec -> 20 Gb/sec",
    ),
    (
        "magnitude",
        "- Before the commit: ~6150 MiB/s, anywhere\n- After the commit:\n  - same bridge: ~4985 MiB/s\n",
        "6150 MiB/s -> 4985 MiB/s",
    ),
    ("magnitude", "Writes went from some 10 ops/s to around 1k ops/s.", "10 ops/s -> 1k ops/s"),
    (
        "magnitude",
        "Fork takes 164.8 microseconds -> 183.9 microseconds, slower.",
        "164.8 microseconds -> 183.9 microseconds",
    ),
    ("magnitude", "It was 97-110MB/s. With the commit it dropped to 66-70MB/s.", "97-110 MB/s -> 66-70 MB/s"),
    ("magnitude", "Reads got 30% slower. The drive does 550 MB/s, behind my USB bridge only 400 MB/s.", "-30 %"),
    ("magnitude", "It is slower even with a copy of 4 files to 8 files. It went from 30 s to 45 s.", "30 s -> 45 s"),
    ("metric", "With 6.12 it is slow: the NFS mount times out.", ""),
    # A word of the loss is near, but for a link
    (
        "magnitude",
        "A drop in futexbench (https://git.example.org/mmtests/a/long/path/to/it.git/tree) of ~30%.",
        "-30 %",
    ),
    # Rates before figures that say nothing of their unit
    (
        "magnitude",
        "I got 39.6 Gb/s. It dropped to about 20 Gb/s. In the good test 20K interrupts, in the bad one 11K interrupts.",
        "39.6 Gb/s -> 20 Gb/s",
    ),
    # The largest loss of what mmtests marks as significant
    (
        "magnitude",
        "Hmean     disk-1       3597.12 (   0.00%)     3636.37 (   1.09%)\n"
        "Hmean     disk-25    125000.00 (   0.00%)    75000.00 ( -40.00%)\n"
        "Hmean     disk-49    218424.96 (   0.00%)   193421.05 * -11.45%*\n",
        "218424.96 -> 193421.05",
    ),
    ("magnitude", "Hmean     disk-1       3597.12 (   0.00%)     3636.37 (   1.09%)\n", ""),
    # What benchmarks print of two runs; the worse one is new
    (
        "magnitude",
        "Before:\n\nreal    0m1,500s\nuser    0m0,1s\n\nAfter:\n\nreal    7m11,449s\n",
        "0m1,500s -> 7m11,449s",
    ),
    (
        "magnitude",
        "Now:\n[  5]   0.00-10.01  sec   473 MBytes   396 Mbits/sec  456 sender\nBefore:\n"
        "[  5]   0.00-10.02  sec   632 MBytes   529 Mbits/sec   11 sender\n",
        "529 Mbits/sec -> 396 Mbits/sec",
    ),
    (
        "magnitude",
        "6.12.4\nfio bw=2623MiB/s (2750MB/s)\n\n6.6.9\nfio bw=6796MiB/s (7126MB/s)\n",
        "6796 MiB/s -> 2623 MiB/s",
    ),
    ("magnitude", "1 GB copied, 5.1 s, 210 MB/s\n1 GB copied, 9.9 s, 108 MB/s\n", "210 MB/s -> 108 MB/s"),
    ("magnitude", "The throughput dropped by 10~15%.", "-10-15 %"),
    ("magnitude", "It dropped from 1.250.000 IOPS to 900.000 IOPS.", ""),  # no figure begins in another's middle
    ("magnitude", "We lose: 10.0.0.1 on 5.10, 10.0.0.2 on 5.15.", ""),
    ("magnitude", "6.12: 500 MB/s\n6.11: 0 MB/s\n", ""),
    ("magnitude", "pgbench: 11.8k tps with 6.11, 7.6k with 6.12-rc4.", "11.8k tps -> 7.6k tps"),
    ("magnitude", "The check takes 40 hours instead of 14 hours.", "14 hours -> 40 hours"),
    ("magnitude", "Forwarding dropped from 9.8 Mpps to 8.6 Mpps.", "9.8 Mpps -> 8.6 Mpps"),
    ("magnitude", "6.11.1: 6 min 10 s (6:08 - 6:13)\n6.12.3: 7 min 45 s (7:41 - 7:52)\n", "6 min 10 s -> 7 min 45 s"),
    (
        "magnitude",
        "kIOPS:\n\n  scheduler   v6.11   v6.12-rc1   v6.12-rc1 + revert\n  none    1655   1651    1654\n"
        "  mq-deadline   1420   1164    1418\n",
        "1420 -> 1164",
    ),
    ("magnitude", "   kernel   write   read\n   6.11   8874   9502\n   6.12   5322   9491\n", "8874 -> 5322"),
    ("magnitude", "6.11.5   real 4m11\n6.12-rc5   real 5m02\n", "4m11 -> 5m02"),
    ("magnitude", "CPU v6.11.7 v6.12.9 old v6.12/v6.11\n1 1900.3 3304.7 42.5 1.74x\n", "1900.3 -> 3304.7"),
    ("magnitude", "Kernel bogo ops/s\n6.11.7 2 487 746 100\n6.12.7 1 651 427 66\n", ""),  # one figure or several
    ("magnitude", "Building it took two times longer.", "two times longer"),
    ("magnitude", "Memory is ten times more expensive.", ""),
    ("magnitude", "test 6.11 6.12\nfoo 120 100\n", "120 -> 100"),
    ("magnitude", "6.11: 120 100 110\n6.12: 80 70 75\n", "120 -> 80"),
    ("magnitude", "6.11 6.12\nfoo 100 MB/s 80 MB/s\n", "100 MB/s -> 80 MB/s"),
    ("magnitude", "test  6.11  6.12\nrandread 100 80\n", "100 -> 80"),
    ("magnitude", "test  6.11  6.12\nbw (MB/s)  1234 +-1%  987 +-2%\n", "1234 -> 987"),
    # What, and where
    ("metric", "I report a severe performance regression.", ""),
    ("metric", "While running performance tests, it showed bad performance.", ""),
    ("metric", "A measurable pipe throughput drop.", "pipe throughput"),
    ("metric", "It fell from 500k IOPS to 300k IOPS.", "IOPS"),
    ("metric", "The randread 4k IOPS dropped.", "randread 4k IOPS"),
    ("metric", "It is a 6.6.47 network throughput regression.", "network throughput"),
    ("magnitude", "It fell from 500k IOPS in 6.11 to 300k IOPS in 6.12.", ""),
    ("magnitude", "A drop of page_fault1 -23% was seen.", "-23 %"),
    ("magnitude", "A 900% slowdown.", "+900 %"),
    ("magnitude", "Throughput dropped from 9.41 to 6.02 Gbit/s.", "9.41 Gbit/s -> 6.02 Gbit/s"),
    ("culprit", f"The culprit is commit {SHA[:12]}... It batches.", SHA[:12]),
    ("metric", "The 99th percentile latency grew by 30%, a regression.", "99th percentile latency"),
    ("metric", "A 4k random write latency regression.", "4k random write latency"),
    ("metric", "It went from 8ms to 90ms.", ""),
    ("metric", "A possible performance problem.", ""),
    ("metric", "The compile times are longer.", "compile times"),
    ("metric", "Network performance is down: the throughput is lower.", "throughput"),
    (
        "magnitude",
        "Receiving objects: 8% (4/57), 20 MiB | 3.27 MiB/s\n\nReceiving objects: 72% (9/57), 181 MiB | 60.2 MiB/s",
        "60.2 MiB/s -> 3.27 MiB/s",
    ),
    (
        "magnitude",
        "-PATCH\n0.71 +- 0.001 seconds time elapsed\n\n+PATCH\n0.82 +- 0.001 seconds time elapsed\n",
        "0.71 seconds -> 0.82 seconds",
    ),
    ("metric", "It has a higher CPU usage now.", "CPU usage"),
    ("metric", "It writes at 7x speed only.", "speed"),
    ("metric", "The 20 Gb/s transmit rate is lower.", "transmit rate"),
    ("suite", "Running hackbench shows the regression.", "hackbench"),
    ("metric", "The read throughput dropped.", "read throughput"),
    ("machine", "The box is an AMD EPYC 7601, where it is slower.", "AMD EPYC 7601"),
)


@pytest.mark.parametrize(("name", "text", "value"), FACTS)
def test_a_fact_is_taken_where_its_sentence_says_what_it_is(name: str, text: str, value: str) -> None:
    report = report_of("a question", text)
    fact = getattr(report, name)
    assert fact.value == value
    assert not value or fact.sentence


OFFERS: tuple[tuple[str, str, bool], ...] = (
    ("fio reads: regression in 6.12", "Throughput dropped from 830 MB/s to 410 MB/s.", True),
    ("[REGRESSION] 6.11 -> 6.12: slow boot", "The boot time went from 10s to 25s on my ThinkPad X1.", True),
    ("performance drop on ARM64", f"hackbench is 20% slower since commit {SHA[:12]}.", True),
    ("6.12 hangs at boot", "It hangs, with an oops and a panic. Regression from 6.11.", False),
    ("[REGRESSION] readdir returns wrong entries", f"Bisected to {SHA[:12]}.", False),
    ("raid6 check: 40 hours instead of 14 since 6.12", "It was the same for years, now it is 27 MB/s.", True),
    ("upload collapses to 35 Mbit/s in 6.12-rc (was 310)", f"Bisected to {SHA[:12]}, 6.11 is fine.", True),
    ("Fwd: [Bug 4] backup takes twice as long with 6.12.3", "It takes 5 hours instead of 2 hours.", True),
    ("[REGRESSION] cannot mount the share since 6.12", f"Since {SHA[:12]}. Speed was never good, 6.11 is fine.", False),
    ("deadlock in 6.12", "A deadlock, lockup and hung task. Performance is bad, too.", False),
    ("Performance regression on my board when receiving frames", "I use iperf3, and see a performance drop.", True),
    ("hackbench gets worse: 40% regression with 6.12-rc1", "Compared with 6.11.", True),
    ("6.12-rc3: writes to a disk crawl (190 MB/s -> 41)", f"The bisection says {SHA[:12]}.", True),
    ("Bad SSD performance with 6.12", "dd: 248 MB/s with 6.11, 49 MB/s with 6.12.", True),
    ("6.12: p99 of our mail servers up from 8ms to 90ms", "6.11.9: p99 8ms\n6.12-rc4: p99 90ms\n", True),
    ("Poor performance with bonding", "The throughput is only 90 MB/s on 6.12.", False),
    ("Slow performance of the serial port with 6.12", "With kernel 6.6 it behaved normally.", True),
    ("Very slow encryption on POWER9", "It is 60% slower than the bare link.", False),
    ("Slowdowns on machines with 3000 sockets", "On 6.12 it is slow under load.", False),
    ("Why is NFS slower than iSCSI?", "I see a higher latency.", False),
    ("High load average since 6.12", "With 6.11 the load average was normal, now it is above 12.", True),
    ("Sluggish system with 6.12", "It is slow when I copy files.", False),
    ("raid1 has 3 times higher write latency since 6.12", "With 6.6 it was normal.", True),
    ("fio question", "How do I measure throughput?", False),
    ("[RFC] performance regression since 6.12", f"Bisected to {SHA[:12]}; what shall we do?", True),
    ("NVMe performance bug since kernel 6.12", "A copy takes over 160 s, with 6.11 it took 75 s.", True),
    ("NVMe performance problem", "A copy takes over 160 s.", False),
    # Something broke, and a word of speed stands beside it
    ("[REGRESSION] load shown as 0", f"Since {SHA[:12]} it is wrong, though the disk's latency is 4 ms.", False),
    ("regression by the new allocator", f"runtime: a segmentation fault since {SHA[:12]}.", False),
    ("[REGRESSION] xfstests generic/285", f"It is a regression of xfstests since {SHA[:12]}.", False),
)


@pytest.mark.parametrize(("subject", "text", "offered"), OFFERS)
def test_what_looks_like_a_report_is_offered(subject: str, text: str, offered: bool) -> None:
    report = report_of(subject, text)
    assert (report.score >= OFFERED) is offered, report.signs


@pytest.mark.parametrize(
    ("subject", "headers"),
    [
        ("Re: performance regression in 6.12", {}),
        ("Fwd: Re: performance regression in 6.12", {}),
        ("[PATCH] mm: fix a performance regression", {}),
        ("[ANNOUNCE] fsbench 2.3: finds every performance regression", {}),
        ("performance regression in 6.12", {"In_Reply_To": "<other@users.example>"}),
        ("[mm] 7d3e91c0a4: fio.bw -30.0% regression", {"From": "kernel test robot <robot@bench.example>"}),
    ],
)
def test_answers_patches_and_robots_report_nothing(subject: str, headers: dict[str, str]) -> None:
    raw = mail(subject, "Throughput dropped from 830 MB/s to 410 MB/s.", **headers)
    assert read_report(understand(raw, SETTINGS)) is None


@pytest.mark.parametrize(
    ("text", "commanded"),
    [
        (f"Reads are slower, 830 MB/s -> 410 MB/s.\n\n#regzbot introduced: {SHA[:12]}\n", True),
        ("Reads are slower.\n\n#regzbot introduced: v6.11..v6.12\n", True),
        ("It crashes.\n\n#regzbot introduced: v6.11..v6.12\n", False),
        ("Anything.\n\n#lkp report\n", True),
        ("Reads are slower.\n\n#regzbot monitor\n", True),
        ("It returns EIO.\n\n#regzbot monitor: https://lore.kernel.org/r/a@b/\n", False),
        ("Reads are slower.\n\n#regzbot ^introduced: v6.11..v6.12\n", False),
        ("Reads are slower.\n\n> #regzbot introduced: v6.11..v6.12\n", False),
    ],
)
def test_a_command_of_the_writer_makes_a_mail_about_speed_a_report(text: str, commanded: bool) -> None:
    reading = understand(mail("about 6.12", text), SETTINGS)
    report = read_report(reading)
    assert report
    assert is_commanded(reading, report) is commanded


def test_a_command_says_between_which_versions_it_lies() -> None:
    report = report_of("slow reads", "Reads are slower.\n\n#regzbot introduced: v6.11..v6.12-rc1\n")
    assert (report.good.value, report.bad.value) == ("v6.11", "v6.12-rc1")
    assert report.span == "v6.11 good, v6.12-rc1 bad"
    assert report.cycle == "v6.12"


@pytest.mark.parametrize(
    ("text", "sha"),
    [
        (f"I finished the bisection: the first bad commit is {SHA}.", SHA),
        (f"Bisected to {SHA[:12]}.", SHA[:12]),
        (f"Does {SHA[:12]} help?", ""),
        ("I bisected it, without a result.", ""),
    ],
)
def test_a_later_mail_names_what_a_bisection_found(text: str, sha: str) -> None:
    reading = understand(mail("Re: slow reads", text, In_Reply_To="<other@users.example>"), SETTINGS)
    assert culprit_named(reading)[0].value == sha


def test_versions_of_other_programs_are_not_compared_where_the_subject_names_the_kernel() -> None:
    text = "The build got slower. Sphinx 8.2.3 takes longer than 8.1.3.\n\n8.1.3: 100 s\n8.2.3: 130 s\n"
    report = report_of("Performance regression since v6.15", text)
    assert (report.good.value, report.bad.value) == ("before 6.15", "v6.15")


@pytest.mark.parametrize(
    ("subject", "text", "good", "bad"),
    [
        ("slow since 6.1", "6.10: 100 MB/s\n6.12: 50 MB/s\n", "before 6.1", "6.1"),
        ("slow since 6.12-rc1", "slower: 6.11 vs 6.12, as fio shows.", "6.11", "6.12"),
        ("slow since 6.12", "6.11.3: 100 MB/s\n6.12.1: 50 MB/s\n", "6.11.3", "6.12.1"),
    ],
)
def test_the_version_of_the_subject_is_compared_as_a_version(subject: str, text: str, good: str, bad: str) -> None:
    report = report_of(f"Performance is {subject}", text)
    assert (report.good.value, report.bad.value) == (good, bad)


@pytest.mark.parametrize(
    ("argument", "good", "bad", "title"),
    [
        ("v6.12", "", "v6.12", ""),
        ("v6.13", "6.11", "v6.13", ""),
        ("v6.13-rc1", "6.11", "v6.13-rc1", ""),
        ("next-20260829..next-20260901", "next-20260829", "next-20260901", ""),
        ("v6.9..1f2e3d4c5d6e", "v6.9", "1f2e3d4c5d6e", ""),
        ("1f2e3d4c5d6e..2f2e3d4c5d6e", "1f2e3d4c5d6e", "2f2e3d4c5d6e", ""),
        ("sched/fair: Simplify the wakeup path", "", "", "sched/fair: Simplify the wakeup path"),
    ],
)
def test_a_command_says_what_introduced_it(argument: str, good: str, bad: str, title: str) -> None:
    text = (
        f"Throughput fell by 30%{' from 6.11 to 6.13' if good == '6.11' else ''}.\n\n#regzbot introduced: {argument}\n"
    )
    report = report_of("Performance regression of fio", text)
    assert (report.good.value, report.bad.value, report.culprit_title.value) == (good, bad, title)
    assert report.culprit.value == ""


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"The culprit is {SHA[:12]} (mm: be slow).", True),
        (f"I reverted {SHA[:12]} (mm: be slow) and the speed is back at 1000 MB/s.", True),
        (f"Reverting {SHA[:12]} restores the 610k IOPS.", True),
        (f"I reverted {SHA[:12]}, and that changed nothing.", False),
        (f"Is {SHA[:12]} in your kernel?", False),
        (f"Reverting {SHA[:12]} does not restore the throughput.", False),
        (f"The culprit was not {SHA[:12]}.", False),
        (f"I reverted {SHA[:12]} and the regression is back.", False),
    ],
)
def test_a_later_mail_names_the_culprit_without_a_bisection(text: str, named: bool) -> None:
    sha, _, _ = culprit_named(understand(mail("Re: slow", text), SETTINGS))
    assert bool(sha) is named


def test_a_commit_below_the_sentence_that_blames_it_is_the_culprit() -> None:
    sha = "3b1f0c9d2e44a1b2c3d4e5f60718293a4b5c6d7e"
    text = f"The bisection says that it came\nfrom the below commit:\n\ncommit - {sha} (mm: walk it)\nLink -\n"
    report = report_of("Performance regression in 6.12", text)
    assert (report.culprit.value, report.culprit_title.value) == (sha, "mm: walk it")


@pytest.mark.parametrize(
    "text",
    [
        f"[1] {SHA[:12]} slow [1].\n\n" * 1500,  # footnotes that refer to each other
        f"commit {SHA}\nAuthor: abc" + "\n" * 40_000,
        f"commit {SHA}\nAuthor:" + "\n" * 40_000 + "x",
        "A. " * 13_000,
    ],
)
def test_what_looks_like_facts_all_along_takes_no_long_time(text: str) -> None:
    start = time.process_time()
    report_of("Performance regression in 6.12", text)
    assert time.process_time() - start < 3  # seconds; some thirty, when it was quadratic


def test_facts_are_stored_and_read_back() -> None:
    report = report_of(
        "fio: regression in 6.12", f"830 MB/s -> 410 MB/s since commit {SHA[:12]} (mm: be slow), on 6.12."
    )
    stored = json.loads(json.dumps(report.stored()))
    assert read_stored(stored) == report
    assert read_stored({**stored, "of_a_later_version": 1}) == report


def test_a_report_without_a_culprit_has_an_id_of_its_own() -> None:
    assert len(placeholder("first@users.example")) == 40
    assert placeholder("first@users.example") != placeholder("second@users.example")


@given(
    st.lists(
        st.one_of(
            st.sampled_from([text for _, text, _ in FACTS]),
            st.text(max_size=80),
            st.sampled_from(["commit", SHA, "v6.12", "->", "from", "to", "%", "regression", "(", '"', "0.0", "9" * 30]),
        ),
        max_size=30,
    ).map(" ".join)
)
@example(f"   kernel   v5.10   v5.15\nrun   1m1s   {'5' * 5000}m1s\n")
@example("We lose: 10.0.0.1 on 5.10, 10.0.0.2 on 5.15.")
def test_junk_gives_facts_with_sentences_or_none(text: str) -> None:
    text = text.encode("utf-8", "replace").decode().replace("\r", " ")
    reading = understand(mail("performance regression", text), SETTINGS)
    report = read_report(reading)
    assert report
    stored: dict[str, Any] = report.stored()
    assert read_stored(stored) == replace(report)
    for name in ("culprit", "good", "bad", "magnitude", "metric", "suite", "machine"):
        fact = getattr(report, name)
        assert bool(fact.value) == bool(fact.sentence) or not fact.value
    assert is_performance(report) in (True, False)


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no labelled threads in {SHARED}")
def test_the_labelled_threads_of_people_are_read_as_well_as_is_said() -> None:
    found = figures(read_threads(known=True))
    assert found.right / found.acted >= 0.93
    assert found.done / found.wanted >= 0.70
    assert found.states / found.threads >= 0.70
    assert found.made_or_offered / found.reports >= 0.90
    assert found.wrong_offers == 0
