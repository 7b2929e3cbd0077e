/*
 * huge_text.c: a server that starts moves its machine code to huge pages, for itself and all of its processes.
 *
 * A transaction runs through more code than the processor can translate the addresses of while it lies in pages
 * of 4 kB. The kernel gives huge pages to memory that asks for them, but to files on few file systems only. So the
 * code is copied into such memory, and the copy put in the place of the original in one step. The postmaster does
 * so before main(); processes that it forks share the copy.
 *
 * Whatever does not work (no huge pages, memory that must not become executable) leaves the program as it was; only
 * the last step cannot be taken back once the kernel has begun it. Under strict accounting of memory nothing is done:
 * there each process would be charged the whole code, which was writable once.
 *
 * Source: mmap(2), madvise(2), mremap(2); Intel, "Runtime Performance Optimization Blueprint: Large Code Pages".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALL ((uintptr_t) 4 << 10)
#define HUGE ((uintptr_t) 2 << 20) /* where pages are of 4 kB, on x86-64 and AArch64 alike */

extern int PostmasterMain(int argc, char **argv) __attribute__((weak)); /* which only the server has */

static uintptr_t
round_down(uintptr_t address, uintptr_t unit)
{
	return address & ~(unit - 1);
}

static uintptr_t
round_up(uintptr_t address, uintptr_t unit)
{
	return round_down(address + unit - 1, unit);
}

/* Reads the beginning of a file of the kernel; empty if there is none. */
static void
read_file(const char *path, char *text, size_t size)
{
	int			file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t		length = 0;

	if (file >= 0)
	{
		length = read(file, text, size - 1);
		close(file);
	}
	text[length > 0 ? length : 0] = '\0';
}

/* Whether the kernel gives huge pages to memory that asks for them, and accounts for memory loosely. */
static int
are_given(void)
{
	char		given[64];
	char		accounting[8];

	read_file("/sys/kernel/mm/transparent_hugepage/enabled", given, sizeof(given));
	read_file("/proc/sys/vm/overcommit_memory", accounting, sizeof(accounting));
	return given[0] != '\0' && strstr(given, "[never]") == NULL && accounting[0] != '2';
}

/* Whether all of a copy lies on huge pages: on small ones it would be worse off than in the page cache. */
static int
is_on_huge_pages(const char *copy, size_t size)
{
	FILE	   *areas = fopen("/proc/self/smaps", "re");
	char		line[512];
	unsigned long start,
				end,
				part_kb,
				huge_kb = 0;
	int			is_inside = 0;

	if (areas == NULL)
		return 0;
	while (fgets(line, sizeof(line), areas) != NULL)
	{
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			is_inside = start <= (unsigned long) copy && (unsigned long) copy < end;
		else if (is_inside && sscanf(line, "AnonHugePages: %lu kB", &part_kb) == 1)
			huge_kb = part_kb;
	}
	fclose(areas);
	return huge_kb >= size >> 10;
}

/*
 * Where the code of a segment ends that can be moved: the rest of its last huge page is taken if nobody has it, and
 * if the heap will not begin there.
 */
static uintptr_t
movable_end(uintptr_t mapped_end)
{
	uintptr_t	end = round_up(mapped_end, HUGE);
	uintptr_t	heap = (uintptr_t) sbrk(0);
	void	   *rest;

	if (end == mapped_end)
		return end;
	if (mapped_end <= heap && heap < end)
		return round_down(mapped_end, HUGE);
	rest = mmap((void *) mapped_end, end - mapped_end, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (rest == (void *) mapped_end)
		return end;
	if (rest != MAP_FAILED)		/* a kernel before 4.17 takes the address for a hint */
		munmap(rest, end - mapped_end);
	return round_down(mapped_end, HUGE);
}

/* Returns memory for huge pages, with as much around it as it takes to begin at one; NULL: there is none. */
static char *
huge_memory(size_t size)
{
	char	   *taken = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char	   *copy;

	if (taken == MAP_FAILED)
		return NULL;
	copy = (char *) round_up((uintptr_t) taken, HUGE);
	if (copy > taken)
		munmap(taken, copy - taken);
	munmap(copy + size, taken + HUGE - copy);
	if (madvise(copy, size, MADV_HUGEPAGE) == 0)
		return copy;
	munmap(copy, size);
	return NULL;
}

/* Moves the whole huge pages from start to end of a segment of code. */
static void
move(uintptr_t segment_start, uintptr_t segment_end)
{
	uintptr_t	mapped_end = round_up(segment_end, SMALL);
	uintptr_t	start = round_up(segment_start, HUGE);
	uintptr_t	end;
	size_t		size;
	char	   *copy;

	if (start >= mapped_end)
		return;
	end = movable_end(mapped_end);
	if (end <= start || (copy = huge_memory(size = end - start)) == NULL)
		return;
	memcpy(copy, (const void *) start, (end < mapped_end ? end : mapped_end) - start); /* touches each huge page */
	__builtin___clear_cache(copy, copy + size);
	/* It is never writable and executable at once. What runs here goes on in the copy, which is the same. */
	if (!is_on_huge_pages(copy, size) || mprotect(copy, size, PROT_READ | PROT_EXEC) != 0 ||
		mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *) start) == MAP_FAILED)
		munmap(copy, size);
}

/* Moves the code of the program itself, which is listed first, and ends the list. */
static int
move_program(struct dl_phdr_info *program, size_t size, void *data)
{
	(void) size;
	(void) data;
	for (int i = 0; i < program->dlpi_phnum; i++)
	{
		const		ElfW(Phdr) *part = &program->dlpi_phdr[i];
		uintptr_t	start = program->dlpi_addr + part->p_vaddr;

		/* What is writable too belongs to a program that counts, which writes into it. */
		if (part->p_type == PT_LOAD && (part->p_flags & (PF_X | PF_W)) == PF_X)
			move(start, start + part->p_memsz);
	}
	return 1;
}

static void __attribute__((constructor))
move_to_huge_pages(void)
{
	if (PostmasterMain != NULL && (uintptr_t) sysconf(_SC_PAGESIZE) == SMALL && are_given())
		dl_iterate_phdr(move_program, NULL);
}
